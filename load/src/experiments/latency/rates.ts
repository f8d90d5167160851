import { print } from '@onetrip/stack/terminal.ts'
import type { HttpBench } from '../../drivers/http/bench.ts'
import { saturate } from '../../drivers/http/saturation.ts'
import { figure } from '../../rounds/figures.ts'
import type { Case } from '../../rounds/shape.ts'
import type { Context } from '../experiment.ts'

const CAPACITY_S = 4

/** `2,397 requests/s`. */
export const perSecond = (rate: number) => `${rate.toLocaleString('en-US')} requests/s`
export const ofOwnCapacity = (share: number) => `${share} % of its own capacity`

const keyOf = ({ link, ioThreads, build, variant }: Case) =>
  [link, ioThreads, build, variant].join()

/**
 * Runs each API at full speed and prints the rates.
 *
 * @returns the rate of a share, in percent, of the capacity of the API of a case; at least 1.
 * @throws Problem when all requests to a variant fail; the reason of the signal.
 */
export async function capacitiesOf(bench: HttpBench, context: Context, duration: number) {
  const run = { seconds: Math.min(CAPACITY_S, duration), signal: context.signal }
  const capacities = new Map<string, number>()
  for (const one of bench.cases) {
    const { values } = await context.step(`${one.variant} at full speed`, () =>
      bench.use(one, (api) => saturate(api, run)),
    )
    capacities.set(keyOf(one), values.requestsPerSecond ?? 0)
  }
  const texts = bench.cases.map(
    (one) => `${one.variant} ${figure(capacities.get(keyOf(one)) ?? 0)}`,
  )
  print(`At full speed, requests/s: ${texts.join(', ')}.\n`)
  return (share: number, one: Case) =>
    Math.max(1, Math.round(((capacities.get(keyOf(one)) ?? 0) * share) / 100))
}
