/** A generator that was busy for this share of the time may be what limited a run. */
export const GENERATOR_LIMIT = 0.95

/**
 * Whether a generator was busy all the time and Redis was not: then the rate is the generator's.
 *
 * @param generator share of the time, 0 to 1, in which it ran or was ready to.
 * @param redis likewise of Redis's main thread.
 */
export const isLimitedByGenerator = (generator: number, redis: number): boolean =>
  generator >= GENERATOR_LIMIT && redis < GENERATOR_LIMIT
