import type { HttpResult, HttpSettings } from '../http/result.ts'
import { DISTURBED } from '../measure/machine-cpu.ts'
import type { Variant } from '../stack/api.ts'
import { median } from '../statistics.ts'
import { percent } from '../table.ts'

/** In what two results differ besides their figures, each as `what: before, after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and nothing is judged. */
  load: string[]
  /** In the machine: then CPU times are not judged. */
  machine: string[]
  /** In what other programs took of it: then rates, latencies and CPU times are not judged. */
  disturbance: string[]
  /** In software and code, which may be why something changed. */
  software: string[]
  /** In how much was measured. */
  extent: string[]
}

export function differencesOf(before: HttpResult, after: HttpResult): Differences {
  const common = commonVariants(before.options, after.options)
  const differing = (facts: (result: HttpResult) => Facts) => differ(facts(before), facts(after))
  return {
    load: differing(({ options, redis, poolSize, workers }) => ({
      ...loadOf(options),
      'way to Redis': redis.transport,
      'pool size': poolSize,
      'workers of each API': workers,
      "Redis's I/O threads": redis.ioThreads,
    })),
    machine: differing(({ machine }) => ({ processor: machine.cpu, cores: machine.cores })),
    disturbance: disturbanceOf(before, after),
    software: differing(({ machine, redis, clients, generator, git }) => ({
      commit: git && `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}`,
      Node: machine.node,
      kernel: machine.kernel,
      Redis: `${redis.version} ${redis.build ?? 'of another build'}`,
      'version of the generator': generator,
      ...Object.fromEntries(common.map((name) => [`client of ${name}`, clients[name]])),
    })),
    extent: differing(({ options, samples }) => ({
      rounds: new Set(samples.map(({ round }) => round)).size,
      'seconds per run': options.duration,
      'seconds of warm-up': options.warmup,
    })),
  }
}

/**
 * Beside busy programs a request costs more CPU time (caches, the other half of the core), and the cheap
 * variants lose more than the dear ones: a calm run and a disturbed one differ although nothing changed.
 */
function disturbanceOf(before: HttpResult, after: HttpResult): string[] {
  const shareOf = ({ samples }: HttpResult) =>
    median(samples.map(({ elsewhere }) => elsewhere ?? 0))
  const [old, now] = [shareOf(before), shareOf(after)]
  if (Math.abs(now - old) < DISTURBED) return []
  return [`CPU time that went elsewhere: ${percent(old)}, now ${percent(now)}`]
}

/** In what the load differs that two sets of options ask for. */
export function loadDifferences(before: HttpSettings, after: HttpSettings): string[] {
  return differ(loadOf(before), loadOf(after))
}

/** The variants that both have, in the order of the newer one. */
export function commonVariants(before: HttpSettings, after: HttpSettings): Variant[] {
  return after.variants.filter((variant) => before.variants.includes(variant))
}

type Facts = Record<string, unknown>

const loadOf = (options: HttpSettings): Facts => ({
  connections: options.connections,
  generator: options.generator,
  workload: options.workload,
  sessions: options.sessions,
  items: options.items,
  reads: options.reads,
  seed: options.seed,
})

function differ(before: Facts, after: Facts): string[] {
  return Object.keys({ ...before, ...after })
    .filter((name) => text(before[name]) !== text(after[name]))
    .map((name) => `${name}: ${text(before[name])}, now ${text(after[name])}`)
}

const text = (value: unknown) => (value === null || value === undefined ? 'unknown' : String(value))
