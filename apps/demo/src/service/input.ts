import type { RaceInput, RaceLimits, WireInput } from '../events.ts'

/** A rejected request, with an HTTP status and a message for the user. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  constructor(status: 400 | 404 | 409 | 503, message: string) {
    super(message)
    this.status = status
  }
}

/** @throws Refusal (400) that names the invalid field. */
export function parseLanes(body: unknown, { strategies, distancesMs }: RaceLimits): WireInput {
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
