/** A generator that was busy for this share of the time may be what limited a run. */
export const GENERATOR_LIMIT = 0.95
