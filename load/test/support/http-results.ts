import type { Variant } from '../../src/contenders.ts'
import type { HttpResult } from '../../src/http/result.ts'
import type { Sample } from '../../src/http/sample.ts'
import { summarizeSamples } from '../../src/http/summary.ts'
import { sample } from './samples.ts'

/** Of each variant, requests/s in each round. */
export type Rates = Partial<Record<Variant, readonly number[]>>

/**
 * A result that is plausible in every field.
 *
 * @param change what to give the samples besides their rates.
 */
export function httpResult(
  rates: Rates,
  change: (sample: Sample) => Partial<Sample> = () => ({}),
): HttpResult {
  const variants = Object.keys(rates) as Variant[]
  const samples = Object.entries(rates).flatMap(([variant, list]) =>
    list.map((requestsPerSecond, index) => {
      const plain = sample({ variant: variant as Variant, round: index + 1, requestsPerSecond })
      return { ...plain, ...change(plain) }
    }),
  )
  return {
    format: 'onetrip-load-http/3',
    date: '2026-11-21T10:00:00.000Z',
    command: 'npm run load -- http',
    git: { commit: 'f'.repeat(40), dirty: false },
    stack: 'own',
    machine: { cpu: 'EPYC', cores: 2, memoryBytes: 2 ** 34, kernel: 'Linux 6', node: 'v26.10.0' },
    redis: {
      ...{ version: '8.0.6', build: 'patched-1', ioThreads: 1, pid: 1 },
      ...{ transport: 'tcp', url: 'redis://127.0.0.1:1', started: 'patched' },
    },
    poolSize: 1,
    workers: 1,
    generator: 'autocannon 9.0.0',
    clients: Object.fromEntries(variants.map((variant) => [variant, 'ioredis 6.0.0'])),
    options: {
      variants,
      ...{ connections: 64, duration: 5, rounds: 5, warmup: 2, generator: 'autocannon' },
      ...{ workload: 'realistic', sessions: 1000, items: 1000, reads: 0.2, seed: 17 },
    },
    interrupted: false,
    summaries: summarizeSamples(samples, variants),
    samples,
  }
}
