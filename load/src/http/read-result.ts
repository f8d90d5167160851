import { Problem } from '@onetrip/stack/problem.ts'
import { percentilesOf } from '../drivers/http/generator.ts'
import type { HttpResult } from './result.ts'
import type { Sample } from './sample.ts'
import { summarizeSamples } from './summary.ts'

/**
 * Takes a result that `npm run load -- http --json` wrote, of this format or the one before. What the
 * older format does not have is null, and its summaries are made anew.
 *
 * @param name of the file, for the message.
 * @throws Problem when it is something else, or lacks something.
 */
export function readHttpResult(document: unknown, name: string): HttpResult {
  const format = isObject(document) ? document.format : undefined
  if (!isObject(document) || typeof format !== 'string') {
    throw new Problem(`${name} is no result of npm run load -- http: it has no format.`)
  }
  if (format !== 'onetrip-load-http/3' && format !== 'onetrip-load-http/2') {
    throw new Problem(
      `${name} is of the format ${format}; only onetrip-load-http/3 and /2 will do.`,
    )
  }
  const missing = firstMissing(document)
  if (missing !== undefined) throw new Problem(`${name} is no whole result: ${missing} is missing.`)
  if (format === 'onetrip-load-http/3') return document as unknown as HttpResult
  return upgraded(document as unknown as OldResult)
}

type OldSample = Omit<Sample, 'answered' | 'bytes'>
type OldResult = Omit<HttpResult, 'samples'> & { sessions: number; samples: OldSample[] }

function upgraded({ sessions, ...old }: OldResult): HttpResult {
  const samples = old.samples.map(upgradedSample)
  return {
    ...old,
    format: 'onetrip-load-http/3',
    workers: 1,
    interrupted: false,
    options: { ...old.options, workload: 'realistic', sessions, reads: 0 },
    summaries: summarizeSamples(samples, old.options.variants),
    samples,
  }
}

function upgradedSample(sample: OldSample): Sample {
  const statuses = Object.entries(sample.errors).filter(([kind]) => /^\d{3}$/.test(kind))
  return {
    ...sample,
    answered: statuses.reduce((sum, [, count]) => sum + count, sample.ok),
    bytes: null,
    latency: { ...percentilesOf(() => null), ...sample.latency },
    perRequest: { ...sample.perRequest, bytesSent: null, bytesReceived: null },
  }
}

type Fields = Record<string, unknown>

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** The first thing that all results have and this one has not; undefined for a whole one. */
function firstMissing(result: Fields): string | undefined {
  for (const name of ['machine', 'redis', 'options', 'clients']) {
    if (!isObject(result[name])) return name
  }
  const { samples, options } = result
  if (!Array.isArray(samples) || samples.length === 0) return 'samples'
  if (!isObject(options) || !Array.isArray(options.variants)) return 'options.variants'
  for (const [index, sample] of samples.entries()) {
    const where = `samples[${index}]`
    if (!isObject(sample) || typeof sample.variant !== 'string') return `${where}.variant`
    for (const name of ['round', 'requestsPerSecond', 'ok']) {
      if (typeof sample[name] !== 'number') return `${where}.${name}`
    }
    for (const name of ['latency', 'perRequest', 'errors', 'generator']) {
      if (!isObject(sample[name])) return `${where}.${name}`
    }
  }
  return undefined
}
