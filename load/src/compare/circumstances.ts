import type { HttpResult } from '../http/result.ts'
import type { Variant } from '../stack/api.ts'

/** In what two results differ besides their figures, each as `what: before, after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and nothing is judged. */
  load: string[]
  /** In the machine: then CPU times are not judged. */
  machine: string[]
  /** In software and code, which may be why something changed. */
  software: string[]
  /** In how much was measured. */
  extent: string[]
}

export function differencesOf(before: HttpResult, after: HttpResult): Differences {
  const common = commonVariants(before, after)
  const differing = (facts: (result: HttpResult) => Record<string, unknown>) => {
    const [old, now] = [facts(before), facts(after)]
    return Object.keys({ ...old, ...now })
      .filter((name) => text(old[name]) !== text(now[name]))
      .map((name) => `${name}: ${text(old[name])}, now ${text(now[name])}`)
  }
  return {
    load: differing(({ options, redis, generator, poolSize, workers }) => ({
      connections: options.connections,
      generator: generator.split(' ')[0],
      workload: options.workload,
      sessions: options.sessions,
      items: options.items,
      reads: options.reads,
      seed: options.seed,
      'way to Redis': redis.transport,
      'pool size': poolSize,
      'workers of each API': workers,
      "Redis's I/O threads": redis.ioThreads,
    })),
    machine: differing(({ machine }) => ({ processor: machine.cpu, cores: machine.cores })),
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

/** The variants that both results have, in the order of the newer one. */
export function commonVariants(before: HttpResult, after: HttpResult): Variant[] {
  return after.options.variants.filter((variant) => before.options.variants.includes(variant))
}

const text = (value: unknown) => (value === null || value === undefined ? 'unknown' : String(value))
