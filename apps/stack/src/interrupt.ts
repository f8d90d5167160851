import { killPrograms } from './program.ts'

/** npm, the terminal and a wrapper each pass the same Ctrl-C on; within this time they count once. */
const ECHO_MS = 500

/** What is left to do when everything was killed takes no longer, or is not worth it. */
const LAST_MS = 2_000

export interface Interrupts {
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal
  /** Does what the first Ctrl-C does, for another reason. */
  interrupt(reason: string): void
  /** Goes back to the system's own reaction to these signals. */
  dispose(): void
}

/**
 * Takes Ctrl-C, SIGTERM and SIGHUP over. The first aborts `signal`. After a second one, at least half
 * a second later, the user does not want to wait any longer: all programs are killed, and this
 * process ends within two seconds.
 *
 * @param print where to tell the user.
 * @param exitCode of the process if it has to be ended.
 */
export function listenForInterrupts(print: (text: string) => void, exitCode: number): Interrupts {
  const controller = new AbortController()
  let countedAt = Number.NEGATIVE_INFINITY
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now()
    if (now - countedAt < ECHO_MS) return
    countedAt = now
    if (controller.signal.aborted) {
      print('Killing.')
      killPrograms()
      setTimeout(() => process.exit(exitCode), LAST_MS).unref()
      return
    }
    print('\nStopping … (Ctrl-C again to kill)')
    controller.abort(new Error(`interrupted by ${signal}`))
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  return {
    signal: controller.signal,
    interrupt: (reason) => controller.abort(new Error(reason)),
    dispose() {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
