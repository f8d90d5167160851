import { Problem } from '@onetrip/stack/problem.ts'
import type { Context, Run } from '../../experiment/experiment.ts'
import { errorKinds, figure } from '../../experiment/figures.ts'
import { ELSEWHERE, type Measured } from '../../experiment/result.ts'
import type { Case, Doubt, Metric } from '../../experiment/shape.ts'
import { usageOf } from '../../measure/usage.ts'
import { GENERATOR_LIMIT } from '../generator-limit.ts'
import { type Api, giveUpIfGone, type HttpBench } from './bench.ts'
import { percentiles, type Saturate } from './generator.ts'

// What a run at full speed over HTTP gives: for http and scaling, and for what latency's rates are shares of.

const perRequest = { unit: 'per request', better: 'lower' } as const
const micros = { unit: 'µs of CPU per request' } as const

export const saturationMetrics: readonly Metric[] = [
  {
    ...{ name: 'requestsPerSecond', label: 'requests/s', unit: 'requests/s' },
    ...{ kind: 'pace', better: 'higher', least: 0.1 },
  },
  ...Object.entries({ ...percentiles, max: 'longest', mean: 'mean' }).map(
    ([name, percentile]): Metric => ({
      name,
      label: `${typeof percentile === 'number' ? `p${percentile}` : percentile} ms`,
      unit: 'ms',
      ...(name === 'p99' && { kind: 'pace', better: 'lower', least: 0.01 }),
    }),
  ),
  {
    ...{ ...perRequest, name: 'connections', label: 'Redis connections /request' },
    ...{ kind: 'count', least: 0.01, format: 'fixed' },
  },
  {
    ...{ ...perRequest, name: 'commands', label: 'commands /request' },
    ...{ kind: 'count', least: 0.05, format: 'fixed' },
  },
  {
    ...{ ...perRequest, name: 'roundTrips', label: 'round trips /request' },
    ...{ kind: 'count', least: 0.05, format: 'fixed' },
  },
  { ...micros, name: 'generatorCpuMicros', label: 'generator CPU µs /request' },
  {
    ...{ ...micros, name: 'apiCpuMicros', label: 'API CPU µs /request' },
    ...{ kind: 'cpu', better: 'lower', least: 1 },
  },
  {
    ...{ ...micros, name: 'redisCpuMicros', label: 'Redis CPU µs /request' },
    ...{ kind: 'cpu', better: 'lower', least: 1 },
  },
  { name: 'bytesSent', label: 'bytes sent /request', unit: 'bytes' },
  { name: 'bytesReceived', label: 'bytes received /request', unit: 'bytes' },
  { name: 'generatorBusy', label: 'generator busy', unit: 'share', format: 'percent' },
]

export const saturationDoubts: Readonly<Record<string, Doubt>> = {
  generator: {
    mark: '*',
    text: `The generator was busy ${GENERATOR_LIMIT * 100} % of the time or more and may have been the bottleneck, so no ratio is given. Fewer connections or --generator wrk may help.`,
  },
}

const references = ['naive', 'naive-lean', 'sequential', 'pipeline', 'noop']

/** The variant that the others are compared with: the first of the usual ones, else the first of all. */
export function baselineVariant(_: Case, cases: readonly Case[]): Partial<Case> {
  const variants = cases.flatMap(({ variant }) => variant ?? [])
  const usual = references.find((name) => variants.includes(name))
  return { variant: usual ?? variants[0] ?? '' }
}

/**
 * Sends as many requests as an API answers, and reads before and after what it cost.
 *
 * @throws Problem when nothing succeeded, or the API or Redis do not tell; the reason of the signal.
 */
export async function saturate(
  { monitor, owned, calls }: Pick<HttpBench, 'monitor' | 'owned' | 'calls'>,
  api: Api,
  by: Saturate,
  { seconds, context, update }: { seconds: number; context: Context } & Pick<Run<object>, 'update'>,
): Promise<Measured> {
  const { signal } = context
  const { result, used } = await usageOf(
    { url: api.url, monitor, signal },
    () =>
      by({
        ...{ url: api.url, owned, calls: calls(api), seconds, signal },
        onProgress(now) {
          const { requestsPerSecond, p50, p99 } = now
          const latency = p50 && p99 ? `  p50 ${figure(p50)} ms  p99 ${figure(p99)} ms` : ''
          update(`${figure(requestsPerSecond)} requests/s${latency}`)
          giveUpIfGone(context, api, now)
        },
      }),
    ({ generator }) => generator.cpuSeconds,
  )
  const { ok, sent, answered, errors, latency, bytes, generator } = result
  if (ok === 0) {
    throw new Problem(
      `No request succeeded for ${api.variant} (${errorKinds(errors)}): there is nothing to compare.`,
    )
  }
  const { redis, api: ofApi, elsewhere } = used
  const commands = redis.commands / sent
  const roundTrips = ofApi.roundTrips / sent
  return {
    values: {
      [ELSEWHERE]: elsewhere,
      requestsPerSecond: ok / result.seconds,
      ...latency,
      connections: redis.connections / sent,
      commands,
      // Clients that gather commands by themselves do not tell how often they write.
      roundTrips: roundTrips === 0 && commands > 0.5 ? null : roundTrips,
      generatorCpuMicros: (generator.cpuSeconds * 1e6) / sent,
      apiCpuMicros: (ofApi.cpuSeconds * 1e6) / sent,
      redisCpuMicros: (redis.cpuSeconds * 1e6) / sent,
      bytesSent: bytes.sent / answered,
      bytesReceived: bytes.received / answered,
      generatorBusy: generator.utilization,
    },
    errors,
    doubts: generator.utilization >= GENERATOR_LIMIT ? ['generator'] : [],
  }
}
