import { print } from '@onetrip/stack/terminal.ts'
import type { HttpBench } from '../../drivers/http/bench.ts'
import { saturate } from '../../drivers/http/saturation.ts'
import type { Context } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'

export interface Rate {
  /** The value of the factor: `50 %`, or `500 requests/s`. */
  at: string
  /** Requests per second. */
  rate: number
}

const CAPACITY_S = 4

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
  duration: number,
): Promise<Rate[]> {
  const run = { seconds: Math.min(CAPACITY_S, duration), signal: context.signal }
  const capacities: { variant: string; rate: number }[] = []
  for (const api of bench.apis) {
    const { variant } = api
    const { values } = await context.step(`${variant} at full speed`, () =>
      saturate(bench, api, run),
    )
    capacities.push({ variant, rate: values.requestsPerSecond ?? 0 })
  }
  const texts = capacities.map(({ variant, rate }) => `${variant} ${figure(rate)}`)
  print(`At full speed, requests/s: ${texts.join(', ')}. The rates are shares of the lowest.\n`)
  const slowest = Math.min(...capacities.map(({ rate }) => rate))
  const atShare = (share: number) => Math.max(1, Math.round((slowest * share) / 100))
  return ascending(shares.map((share) => ({ at: `${share} %`, rate: atShare(share) })))
}

const ascending = (rates: readonly Rate[]): Rate[] => rates.toSorted((a, b) => a.rate - b.rate)
