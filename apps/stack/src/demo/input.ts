import { strategyNames } from '@onetrip/session-store'
import type { Pair, RaceInput } from './events.ts'
import { Refusal } from './events.ts'
import { raceLimits } from './race.ts'

/** @throws Refusal (400) that names what is wrong. */
export function parseLanes(body: unknown): Pick<RaceInput, 'lanes' | 'distanceMs'> {
  const { lanes, distanceMs } = (body ?? {}) as Partial<Record<keyof RaceInput, unknown>>
  const known = Array.isArray(lanes) ? strategyNames.filter((name) => lanes.includes(name)) : []
  if (!Array.isArray(lanes) || lanes.length !== 2 || known.length < new Set(lanes).size) {
    throw new Refusal(400, `lanes must be two of ${strategyNames.join(', ')}.`)
  }
  const distance = raceLimits.distancesMs.find((one) => one === distanceMs)
  if (distance === undefined) {
    throw new Refusal(400, `distanceMs must be one of ${raceLimits.distancesMs.join(', ')}.`)
  }
  return { lanes: lanes as unknown as Pair<(typeof strategyNames)[number]>, distanceMs: distance }
}

/** @throws Refusal (400) that names what is wrong. */
export function parseRace(body: unknown): RaceInput {
  const input = parseLanes(body)
  const { connections } = body as { connections?: unknown }
  const { minimum, maximum } = raceLimits.connections
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
