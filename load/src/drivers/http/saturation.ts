import { saturateByAutocannon } from '@onetrip/stack/measure/autocannon.ts'
import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { percentileNames, percentText } from '@onetrip/stack/measure/latencies.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { usageOf } from '../../measure/usage.ts'
import { errorKinds } from '../../rounds/figures.ts'
import {
  asCost,
  asLatency,
  asRate,
  type Case,
  type Doubt,
  type Measured,
  type Metric,
} from '../../rounds/shape.ts'
import { STEADY_S, untilSteady } from '../age.ts'
import type { Api } from './target.ts'

// Runs at full speed over HTTP: for the experiment http, and for the capacities that latency computes its rates from.

const perRequest = { ...asCost, format: 'fixed' } as const

export const saturationMetrics: readonly Metric[] = [
  { name: 'requestsPerSecond', label: 'requests/s', ...asRate },
  ...percentileNames.map((name): Metric => {
    const metric = { name, label: `${percentText(name)} ms`, unit: 'ms' }
    return name === 'p99' ? { ...metric, ...asLatency } : metric
  }),
  { name: 'max', label: 'longest ms' },
  { ...perRequest, name: 'connections', label: 'Redis connections /request' },
  { ...perRequest, name: 'commands', label: 'commands /request' },
  { ...perRequest, name: 'roundTrips', label: 'round trips /request' },
  { name: 'generatorCpuMicros', label: 'generator CPU µs /request' },
  { ...asCost, name: 'apiCpuMicros', label: 'API CPU µs /request' },
  { ...asCost, name: 'redisMainCpuMicros', label: "Redis's main thread CPU µs /request" },
  { ...asCost, name: 'redisCpuMicros', label: 'Redis CPU µs /request' },
  { name: 'generatorBusy', label: 'generator busy', format: 'percent' },
]

export const saturationDoubts: Readonly<Record<string, Doubt>> = {
  generator: {
    mark: '*',
    text: `The generator was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have been the bottleneck, so no ratio is given. Fewer connections may help.`,
  },
}

/** The variant that the others are compared with: the first one in `usual` that was measured, else the first one. */
export function baselineVariant(_: Case, cases: readonly Case[]): Partial<Case> {
  const usual = ['naive', 'naive-lean', 'sequential', 'pipeline']
  const found = usual.find((name) => cases.some(({ variant }) => variant === name))
  return { variant: found ?? cases[0]?.variant ?? '' }
}

/** A run in which no request was answered, and none failed, was too short for a busy machine: it is repeated with this. */
const UNANSWERED_S = 10

/**
 * Sends requests at full speed, and measures the resources that they use.
 *
 * @throws Problem when no request succeeded, or when the API or Redis does not report its metrics; the reason of the
 *   signal.
 */
export async function saturate(
  api: Api,
  run: { connections?: number; seconds: number; signal: AbortSignal },
): Promise<Measured> {
  const { connections, seconds, signal } = run
  const { url, owned, monitor, foreign } = api
  const options = { url, owned, calls: api.calls(connections), seconds, signal }
  const { result, cost } = await usageOf({ url, monitor, foreign, signal }, () =>
    saturateByAutocannon(options),
  )
  const { ok, errors, latency } = result
  if (ok === 0 && errorKinds(errors) === '0' && seconds < UNANSWERED_S) {
    return await saturate(api, { ...run, seconds: UNANSWERED_S })
  }
  if (ok === 0) {
    throw new Problem(`All requests to ${api.variant} failed (${errorKinds(errors)}).`)
  }
  const { roundTrips = null, commands = null } = cost.values
  const values = {
    requestsPerSecond: ok / result.seconds,
    ...latency,
    ...cost.values,
    // Clients with automatic batching do not report their round trips.
    roundTrips: roundTrips === 0 && (commands ?? 0) > 0.5 ? null : roundTrips,
  }
  return { ...cost, values, errors }
}

/** Runs an API at full speed until its rate stops rising. @throws as `saturate`. */
export const warm = (api: Api, signal: AbortSignal) =>
  untilSteady(async () => {
    const { values } = await saturate(api, { seconds: STEADY_S, signal })
    return values.requestsPerSecond ?? 0
  })
