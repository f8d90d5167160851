/** The oldest Node that the package supports. */
export const OLDEST_NODE = '22.12'

// Otherwise an older Node would fail later, in the first call that uses one of these.
if ([Map.groupBy, Promise.withResolvers, URL.parse].some((feature) => feature === undefined)) {
  throw new Error(
    `@onetrip/session-store needs Node ${OLDEST_NODE} or newer; this is ${process.version}`,
  )
}
