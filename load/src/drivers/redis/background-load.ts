import { generateLoad, type Load, type LoadOptions } from './generator/load.ts'

/** Many clients share the rate, so that a stall delays many GETs and not only one. */
export const BACKGROUND_CLIENTS = 50
/** GETs per second of all clients together. */
export const BACKGROUND_RATE = 1_000

/**
 * Runs `work` while other clients send GETs at a constant rate. The latency of a GET is measured from when it is
 * due, so the latencies show how long `work` blocks the server.
 *
 * @returns the result of `work`, and the figures of the other clients.
 * @throws the error of `work`, after the other clients have stopped.
 */
export async function withBackgroundLoad<Result>(
  { target, signal }: Pick<LoadOptions, 'target' | 'signal'>,
  work: () => Promise<Result>,
): Promise<{ result: Result; background: Load }> {
  const done = new AbortController()
  const background = generateLoad({
    target,
    mode: 'long',
    connections: BACKGROUND_CLIENTS,
    rate: BACKGROUND_RATE,
    end: {},
    command: ['GET', '{key}'],
    signal: AbortSignal.any([signal, done.signal]),
  })
  background.catch(() => {}) // in case `work` fails first
  try {
    const result = await work()
    done.abort()
    return { result, background: await background }
  } finally {
    done.abort()
    await background.catch(() => {})
  }
}
