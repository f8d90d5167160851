import { print } from '@onetrip/stack/terminal.ts'
import { median } from 'simple-statistics'
import type { HttpBench } from '../../drivers/http/bench.ts'
import { saturate } from '../../drivers/http/saturation.ts'
import type { Context, RoundOptions } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { orderOf } from '../../experiment/rounds.ts'

export interface Rate {
  /** The value of the factor: `50 %`, or `500 requests/s`. */
  at: string
  /** Requests per second. */
  rate: number
}

const CAPACITY_ROUNDS = 2
const CAPACITY_S = 2

/** `2,397 requests/s`. */
export const perSecond = (rate: number) => `${rate.toLocaleString('en-US')} requests/s`

/** The rates of `--rate`. */
export const givenRates = (rates: readonly number[]): Rate[] =>
  ascending(rates.map((rate) => ({ at: perSecond(rate), rate })))

/**
 * Runs each variant at full speed, prints the rates, and returns shares of the lowest one.
 *
 * @param shares in percent.
 * @throws Problem when all requests to a variant fail; the reason of the signal.
 */
export async function sharesOfCapacity(
  bench: HttpBench,
  context: Context,
  shares: readonly number[],
  { rounds, duration }: RoundOptions,
): Promise<Rate[]> {
  const rates = new Map<string, number[]>(bench.apis.map(({ variant }) => [variant, []]))
  const run = { seconds: Math.min(CAPACITY_S, duration), signal: context.signal }
  for (let round = 0; round < Math.min(CAPACITY_ROUNDS, rounds); round++) {
    for (const api of orderOf(bench.apis, round)) {
      const { values } = await context.step(`${api.variant} at full speed`, () =>
        saturate(bench, api, run),
      )
      rates.get(api.variant)?.push(values.requestsPerSecond ?? 0)
    }
  }
  const capacities = [...rates].map(([variant, own]) => ({ variant, rate: median(own) }))
  const texts = capacities.map(({ variant, rate }) => `${variant} ${figure(rate)}`)
  print(`At full speed, requests/s: ${texts.join(', ')}. The rates are shares of the lowest.\n`)
  const slowest = Math.min(...capacities.map(({ rate }) => rate))
  const atShare = (share: number) => Math.max(1, Math.round((slowest * share) / 100))
  return ascending(shares.map((share) => ({ at: `${share} %`, rate: atShare(share) })))
}

/** Sorts the rates and removes duplicates: with a low capacity, several shares may be the same rate. */
function ascending(rates: readonly Rate[]): Rate[] {
  const different = new Map(rates.map((one) => [one.rate, one]))
  return [...different.values()].toSorted((a, b) => a.rate - b.rate)
}
