import { killPrograms } from './program.ts'

/** One Ctrl-C may arrive from the terminal, npm and a wrapper. Signals within this time count as one. */
const SAME_INTERRUPT_MS = 500

/** The time to exit after all programs were killed. */
const EXIT_TIMEOUT_MS = 2_000

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Handles Ctrl-C, SIGTERM and SIGHUP. The first aborts `signal`. A second one, at least half a second
 * later, kills all programs and ends this process within two seconds.
 *
 * @param print prints a line for the user.
 * @param exitCode of this process after a second signal.
 */
export function listenForInterrupts(print: (text: string) => void, exitCode: number) {
  const controller = new AbortController()
  let countedAt = Number.NEGATIVE_INFINITY
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now()
    if (now - countedAt < SAME_INTERRUPT_MS) return
    countedAt = now
    if (controller.signal.aborted) {
      print('Killing.')
      killPrograms()
      setTimeout(() => process.exit(exitCode), EXIT_TIMEOUT_MS).unref()
    } else {
      print('\nStopping … (Ctrl-C again to kill)')
      controller.abort(new Error(`interrupted by ${signal}`))
    }
  }
  for (const signal of signals) process.on(signal, onSignal)
  return {
    signal: controller.signal,
    /** Aborts `signal` for another reason. */
    interrupt: (reason: string) => controller.abort(new Error(reason)),
    /** Removes the signal handlers. */
    dispose() {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
