import { print } from '@onetrip/stack/terminal.ts'
import { median } from 'simple-statistics'
import type { HttpBench } from '../../drivers/http/bench.ts'
import { saturate } from '../../drivers/http/saturation.ts'
import type { Context, RoundOptions } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import { orderOf } from '../../experiment/rounds.ts'

/** At what rates the variants are measured. */
export interface Rates {
  /** Ascending. `at` is the value of the factor: `50 %`, or `500 requests/s`. */
  rates: readonly { at: string; rate: number }[]
  /** What each variant answered at full speed; empty where that was not measured. */
  capacity: ReadonlyMap<string, number>
}

const CAPACITY_ROUNDS = 2
const CAPACITY_S = 2

/** `2,397 requests/s`. */
export const perSecond = (rate: number) => `${rate.toLocaleString('en-US')} requests/s`

/** Rates that the user gave. */
export const givenRates = (rates: readonly number[]): Rates => ({
  rates: ascending(rates.map((rate) => ({ at: perSecond(rate), rate }))),
  capacity: new Map(),
})

/** The rates of an older result, to be compared with it. */
export const ratesOf = ({ samples }: Result): Rates => ({
  rates: ascending(samples.map((one) => ({ at: String(one.case.at), rate: one.values.rate ?? 0 }))),
  capacity: new Map(),
})

/**
 * Runs each variant at full speed. The rates are shares of what the slowest one answered.
 *
 * @param shares in percent.
 * @throws Problem when a variant answers nothing; the reason of the signal.
 */
export async function sharesOfCapacity(
  bench: HttpBench,
  context: Context,
  shares: readonly number[],
  { rounds, duration }: RoundOptions,
): Promise<Rates> {
  const runs: { variant: string; rate: number }[] = []
  const seconds = Math.min(CAPACITY_S, duration)
  for (let round = 0; round < Math.min(CAPACITY_ROUNDS, rounds); round++) {
    for (const api of orderOf(bench.apis, round)) {
      const { values } = await context.step(`${api.variant} at full speed`, () =>
        saturate(bench, api, { seconds, signal: context.signal }),
      )
      runs.push({ variant: api.variant, rate: values.requestsPerSecond ?? 0 })
    }
  }
  const capacity = new Map(
    [...Map.groupBy(runs, ({ variant }) => variant)].map(
      ([variant, own]) => [variant, median(own.map(({ rate }) => rate))] as const,
    ),
  )
  print(`${capacityText(capacity)}\n`)
  const slowest = Math.min(...capacity.values())
  const rates = shares.map((share) => ({
    at: `${share} %`,
    rate: Math.max(1, Math.round((slowest * share) / 100)),
  }))
  return { rates: ascending(rates), capacity }
}

/** Each rate once: of a low capacity, several shares may be the same rate. */
function ascending(rates: Rates['rates']): Rates['rates'] {
  const different = new Map(rates.map((one) => [one.rate, one]))
  return [...different.values()].toSorted((a, b) => a.rate - b.rate)
}

/** `At full speed, requests/s: naive 2,663, batch 32,905.` */
export function capacityText(capacity: Rates['capacity']): string {
  const listed = [...capacity].map(([variant, rate]) => `${variant} ${figure(rate)}`)
  return `At full speed, requests/s: ${listed.join(', ')}. The shares are of the lowest.`
}
