import {
  type Percentile,
  percentileNames,
  percentText,
  shareOf,
} from '@onetrip/stack/measure/latencies.ts'
import { InvalidArgumentError } from 'commander'
import { FAILED, runPaced } from '../../drivers/http/paced.ts'
import type { Api } from '../../drivers/http/target.ts'
import { arrivalTimes, secondsAt } from '../../drivers/pacer/arrivals.ts'
import type { PacedGenerator } from '../../drivers/pacer/pacer.ts'
import { errorKinds, figure } from '../../rounds/figures.ts'
import type { Doubt, Measured } from '../../rounds/shape.ts'

/** The metric with the highest rate. */
export const HIGHEST_RATE = 'highestRate'
/** The first rate of the first search. */
export const FIRST_RATE = 1_000
const PRECISION = 1.05
const MAX_RUNS = 20
/** The number of requests in a run for ten of them to be beyond a percentile. */
const requestsFor = (percentile: Percentile) => Math.ceil(10 / (1 - shareOf(percentile)))

export const imprecise: Doubt = {
  mark: '‡',
  text: `The search ended after ${MAX_RUNS} runs before it reached a precision of 5 %. The highest rate may be higher.`,
}

interface RateSearch {
  /** The first rate. */
  start: number
  limit: string
  duration: number
  signal: AbortSignal
  note(text: string): void
}

/** Searches for the highest rate of an API within a latency limit. */
export async function searchRate(
  generator: PacedGenerator,
  api: Api,
  { start, limit, duration, signal, note }: RateSearch,
): Promise<Measured> {
  const { percentile, milliseconds } = limitOf(limit)
  const requests = requestsFor(percentile)
  let latencyAtBest: number | null = null
  let foreignCpuSeconds = 0
  let lowestFailed: (Pick<Measured, 'doubts' | 'errors'> & { rate: number }) | undefined
  const holds = async (rate: number) => {
    const seconds = secondsAt(rate, { duration, requests, rounds: 1 })
    const schedule = arrivalTimes(rate, seconds)
    const paced = await runPaced(generator, api, { schedule, signal })
    const { errors, doubts } = paced
    const failed = paced.ok < paced.due
    // With too few requests for the percentile, all of them must be below the limit.
    const latency = failed ? FAILED : (paced.percentile(percentile) ?? paced.max ?? FAILED)
    const isHeld = latency < milliseconds
    const slow = isHeld ? '' : ', too slow'
    const text = failed ? `failed (${errorKinds(errors)})` : `${figure(latency)} ms${slow}`
    note(`${rate.toLocaleString('en-US')} requests/s: ${text}`)
    foreignCpuSeconds += paced.cost.foreignCpuSeconds
    if (isHeld) latencyAtBest = latency
    // If the generator was the bottleneck at that rate, the result is the generator's limit.
    else if (rate <= (lowestFailed?.rate ?? rate)) lowestFailed = { rate, errors, doubts }
    return isHeld
  }
  const found = await highestRate(holds, { start, precision: PRECISION, runs: MAX_RUNS })
  return {
    values: { [HIGHEST_RATE]: found.rate, latency: latencyAtBest, runs: found.runs },
    foreignCpuSeconds,
    errors: found.rate === null ? (lowestFailed?.errors ?? {}) : {},
    doubts: found.isPrecise ? (lowestFailed?.doubts ?? []) : ['imprecise'],
  }
}

/** `p99 < 10 ms` */
export function limitText(text: string): string {
  const { percentile, milliseconds } = limitOf(text)
  return `${percentText(percentile)} < ${milliseconds} ms`
}

/** The parser of `--limit`. */
export function requireLimit(text: string): string {
  const { percentile, milliseconds } = limitOf(text)
  return `${percentile}<${milliseconds}`
}

function limitOf(text: string): { percentile: Percentile; milliseconds: number } {
  const [, name, value] = /^\s*(p\d+)\s*<\s*(\d+(?:\.\d+)?)\s*$/.exec(text) ?? []
  const percentile = percentileNames.find((one) => one === name)
  const milliseconds = Number(value)
  if (percentile && milliseconds > 0) return { percentile, milliseconds }
  throw new InvalidArgumentError(
    `It must have the form 'p99<5', in milliseconds, with one of ${percentileNames.join(', ')}.`,
  )
}

interface SearchOptions {
  /** The first rate, in requests per second. */
  start: number
  /** The result is within this factor of the highest rate: 1.05 for 5 %. */
  precision: number
  /** The maximum number of runs. */
  runs: number
}

const [LOWEST, HIGHEST] = [1, 1_000_000]

/**
 * Searches for the highest rate that holds. Doubles or halves the first rate until one rate holds and one does not,
 * then tries rates between them. A rate is rejected after two failed runs, because other programs may disturb one.
 *
 * @param holds measures whether a rate in requests per second is within the limit.
 * @returns the highest rate that held, or null; the number of runs; whether the search reached the precision before
 *   `runs` ended it.
 */
export async function highestRate(
  holds: (rate: number) => Promise<boolean>,
  { start, precision, runs }: SearchOptions,
): Promise<{ rate: number | null; runs: number; isPrecise: boolean }> {
  let [low, high, done] = [0, Number.POSITIVE_INFINITY, 0]
  let rate = Math.min(HIGHEST, Math.max(LOWEST, Math.round(start)))
  let isPrecise = false
  while (done < runs && !isPrecise) {
    done++
    let isHeld = await holds(rate)
    if (!isHeld && done < runs) {
      done++
      isHeld = await holds(rate)
    }
    if (isHeld) low = rate
    else high = rate
    const next = nextRate(low, high)
    isPrecise = next <= low || next >= high || high / low <= precision
    rate = next
  }
  return { rate: low || null, runs: done, isPrecise }
}

function nextRate(low: number, high: number): number {
  if (low === 0) return Math.max(LOWEST, Math.floor(high / 2))
  if (high === Number.POSITIVE_INFINITY) return Math.min(HIGHEST, low * 2)
  return Math.round(Math.sqrt(low * high))
}
