import { type RaceInput, type RaceLimits, Refusal } from './events.ts'

/** @throws Refusal (400) that names the invalid field. */
export function parseLanes(
  body: unknown,
  { strategies, distancesMs }: RaceLimits,
): Pick<RaceInput, 'lanes' | 'distanceMs'> {
  const { lanes, distanceMs } = (body ?? {}) as Partial<Record<keyof RaceInput, unknown>>
  const [first, second, ...more] = (Array.isArray(lanes) ? lanes : []).map((lane) =>
    strategies.find((name) => name === lane),
  )
  if (!first || !second || more.length > 0) {
    throw new Refusal(400, `lanes must be two of ${strategies.join(', ')}.`)
  }
  const distance = distancesMs.find((one) => one === distanceMs)
  if (distance === undefined) {
    throw new Refusal(400, `distanceMs must be one of ${distancesMs.join(', ')}.`)
  }
  return { lanes: [first, second], distanceMs: distance }
}

/** @throws Refusal (400) that names the invalid field. */
export function parseRace(body: unknown, limits: RaceLimits): RaceInput {
  const input = parseLanes(body, limits)
  const { connections } = body as { connections?: unknown }
  const { minimum, maximum } = limits.connections
  if (
    typeof connections !== 'number' ||
    !Number.isInteger(connections) ||
    connections < minimum ||
    connections > maximum
  ) {
    throw new Refusal(400, `connections must be a whole number from ${minimum} to ${maximum}.`)
  }
  return { ...input, connections }
}
