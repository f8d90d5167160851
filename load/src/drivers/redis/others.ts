import { generateLoad, type Load, type LoadOptions } from './generator/load.ts'

/** Clients that share the GETs: each of them waits at most once for a slow answer. */
export const OTHERS = 50
/** GETs per second in all. */
export const OTHERS_RATE = 1_000

/**
 * Does some work while other clients of a server send GETs at an even rate. The clock of each GET starts when
 * it is due, so their latencies show how long the work holds up the server.
 *
 * @throws what `work` throws, after the others have ended.
 */
export async function besideOthers<Result>(
  { target, signal }: Pick<LoadOptions, 'target' | 'signal'>,
  work: () => Promise<Result>,
): Promise<{ result: Result; others: Load }> {
  const done = new AbortController()
  const others = generateLoad({
    ...{ target, mode: 'long', connections: OTHERS, rate: OTHERS_RATE, end: {} },
    command: ['GET', '{key}'],
    signal: AbortSignal.any([signal, done.signal]),
  })
  others.catch(() => {}) // should the work fail first
  try {
    const result = await work()
    done.abort()
    return { result, others: await others }
  } finally {
    done.abort()
    await others.catch(() => {})
  }
}
