import type { RedisFacts } from '@onetrip/stack/redis-info.ts'
import type { Variant } from '../contenders.ts'
import type { GeneratorName } from '../drivers/http/generator.ts'
import type { Ending } from '../experiment/rounds.ts'
import type { WorkloadSettings } from '../http/result.ts'
import type { Sample } from '../http/sample.ts'
import type { VariantSummary } from '../http/summary.ts'
import type { Origin } from '../measure/machine.ts'

/** What `npm run load -- scaling` varies. */
export const dimensions = ['connections', 'workers', 'distance'] as const
export type Dimension = (typeof dimensions)[number]

/** What `npm run load -- scaling --json` writes. */
export interface ScalingResult extends Origin, Ending {
  format: 'onetrip-load-scaling/1'
  redis: RedisFacts & { started: string }
  /** Connections that each API's pool has. */
  poolSize: number
  /** Name and version of what sends the requests. */
  generator: string
  /** Name and version of the Redis client that each variant uses. */
  clients: Partial<Record<Variant, string>>
  options: ScalingSettings
  /** What was varied, each with everything else as usual; those that were not wanted are absent. */
  series: ScalingSeries[]
}

export interface ScalingSettings extends WorkloadSettings {
  only: Dimension[]
  /** Distance has `sequential` besides, where it has `pipeline`. */
  variants: Variant[]
  /** Seconds per run; at least 3 with 500 connections and more, 6 over links of 10 ms and more. */
  duration: number
  rounds: number
  /** Seconds of warm-up per API. */
  warmup: number
  generator: GeneratorName
}

export interface ScalingSeries {
  by: Dimension
  /** In the order of what is varied: from few to many, from near to far. */
  points: ScalingPoint[]
  samples: ScalingSample[]
}

/** What is the same for all variants that are compared. */
export interface Setting {
  /** HTTP connections of the generator. */
  connections: number
  /** Processes of each API. */
  workers: number
  /** Name of the way to Redis: `loopback`, `unix`, `switch`, `1ms@1Gb/s`, `vpn`. */
  link: string
}

export interface ScalingPoint extends Setting {
  /** The way to Redis in words: `vpn: 48 ms at 1.8 Mb/s`. */
  linkText: string
  /** What a PING takes from here to Redis, in milliseconds; null where it was not asked. */
  pingMs: number | null
  /**
   * Whether the API's processes and the generator, each of which can fill a core, are more than there are
   * cores.
   */
  oversubscribed: boolean
  /** One for each variant. */
  summaries: VariantSummary[]
}

/** One run over HTTP. */
export interface ScalingSample extends Sample, Setting {}
