/** npm, the terminal and a wrapper each pass the same Ctrl-C on; within this time they count once. */
const ECHO_MS = 500

export interface Interrupts {
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal
  /** Goes back to the system's own reaction to these signals. */
  dispose(): void
}

/**
 * Takes Ctrl-C, SIGTERM and SIGHUP over. The first aborts `signal`; a second one, at least half a
 * second later, calls `again`: the user does not want to wait any longer.
 */
export function listenForInterrupts(handlers: {
  first: (signal: NodeJS.Signals) => void
  again: () => void
}): Interrupts {
  const controller = new AbortController()
  let countedAt = Number.NEGATIVE_INFINITY
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now()
    if (now - countedAt < ECHO_MS) return
    countedAt = now
    if (controller.signal.aborted) return handlers.again()
    handlers.first(signal)
    controller.abort(new Error(`interrupted by ${signal}`))
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  return {
    signal: controller.signal,
    dispose() {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
