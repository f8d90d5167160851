import type { RedisFacts } from '@onetrip/stack/redis-info.ts'
import type { Variant } from '../contenders.ts'
import type { GeneratorName } from '../drivers/http/generator.ts'
import type { Target } from '../drivers/http/target.ts'
import type { WorkloadName } from '../drivers/http/workload.ts'
import type { Ending } from '../experiment/rounds.ts'
import type { Machine, Origin } from '../measure/machine.ts'
import type { Sample } from './sample.ts'
import type { VariantSummary } from './summary.ts'

/** The stack that requests go to. */
export interface StackFacts {
  redis: RedisFacts & { transport: string; url: string }
  /** Connections that each API's pool has; null when that is not known. */
  poolSize: number | null
  /** Processes of each API; null when that is not known. */
  workers: number | null
  /** Name and version of the Redis client that each variant uses. */
  clients: Partial<Record<Variant, string>>
}

/** The same of a result. */
export interface MeasuredStack extends StackFacts {
  /** The stack ran already (`running`), was named (`given`), or was started for this (`own`). */
  stack: Target['kind']
  /** `started`: which build we started, or `installed`, or `foreign`. */
  redis: StackFacts['redis'] & { started: string }
}

/** What the figures are about. */
export interface Circumstances extends StackFacts {
  machine: Machine
  /** Name and version of what sends the requests. */
  generator: string
  options: HttpSettings
}

/** What is requested, as the options of all commands over HTTP say it. */
export interface WorkloadSettings {
  workload: WorkloadName
  /** Users logged in. */
  sessions: number
  items: number
  /** Share of the requests, 0 to 1, that read; all others are `POST /views`. */
  reads: number
  seed: number
}

/** What was asked for, with presets and defaults filled in. */
export interface HttpSettings extends WorkloadSettings {
  variants: Variant[]
  connections: number
  /** Seconds per run. */
  duration: number
  rounds: number
  /** Seconds of warm-up per variant. */
  warmup: number
  generator: GeneratorName
}

/** What `npm run load -- http --json` writes. */
export interface HttpResult extends Origin, Ending, MeasuredStack {
  format: 'onetrip-load-http/3'
  /** Name and version of what sends the requests. */
  generator: string
  options: HttpSettings
  /** One for each variant, in the order of `options.variants`. */
  summaries: VariantSummary[]
  /** One for each variant and round, in the order in which they were run. */
  samples: Sample[]
}
