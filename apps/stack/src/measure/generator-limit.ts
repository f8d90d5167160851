/** From this utilization on, the load generator may have limited a run. */
export const GENERATOR_LIMIT = 0.95
