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

// The routes below /demo have checked the types (events.ts).

/** @throws Refusal (400) that names the field with a value that is not allowed. */
export function checkLanes(
  { lanes, distanceMs }: WireInput,
  { strategies, distancesMs }: RaceLimits,
): void {
  if (!lanes.every((lane) => strategies.includes(lane))) {
    throw new Refusal(400, `lanes must be two to four of ${strategies.join(', ')}.`)
  }
  if (!distancesMs.includes(distanceMs)) {
    throw new Refusal(400, `distanceMs must be one of ${distancesMs.join(', ')}.`)
  }
}

/** @throws Refusal as `checkLanes`. */
export function checkRace(input: RaceInput, limits: RaceLimits): void {
  checkLanes(input, limits)
  const { minimum, maximum } = limits.connections
  if (input.connections < minimum || input.connections > maximum) {
    throw new Refusal(400, `connections must be a whole number from ${minimum} to ${maximum}.`)
  }
}
