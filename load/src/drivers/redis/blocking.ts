import { redisAddress } from '@onetrip/stack/address.ts'
import { Redis } from 'ioredis'

/** What Redis says about commands that hold up all others. */
export interface Blocking {
  /** Commands that ran for 1 ms or longer. */
  slow: number
  /** The one that ran longest, if it took `REMEMBERED_MICROS` or longer. */
  longest: { command: string; milliseconds: number } | null
  /** From LATENCY LATEST: the longest of each kind of event of 1 ms or more, in milliseconds. */
  events: Record<string, number>
}

const SLOW_MICROS = 1_000
/** Shorter commands are not remembered. */
export const REMEMBERED_MICROS = 200
const REMEMBERED = 100_000
/** Commands of the watch itself: to forget 100,000 slow commands takes some milliseconds. */
const OWN = ['slowlog', 'latency']

type SlowlogEntry = readonly [id: number, time: number, micros: number, args: readonly string[]]

/** Watches a Redis, through a connection of its own, for what blocks it. */
export class BlockingWatch {
  readonly #redis: Redis

  constructor(url: string) {
    this.#redis = new Redis(redisAddress(url).options)
  }

  /** Forgets what was; from now on everything counts. */
  async begin(): Promise<void> {
    const settings = {
      'latency-monitor-threshold': SLOW_MICROS / 1_000,
      'slowlog-log-slower-than': REMEMBERED_MICROS,
      'slowlog-max-len': REMEMBERED,
    }
    await this.#redis.config('SET', ...Object.entries(settings).flat())
    await this.#redis.slowlog('RESET')
    await this.#redis.latency('RESET') // the last, and read first: the others may take long themselves
  }

  /** What blocked it since `begin`. */
  async end(): Promise<Blocking> {
    const latest = (await this.#redis.latency('LATEST')) as [string, number, number, number][]
    const all = (await this.#redis.slowlog('GET', -1)) as SlowlogEntry[]
    const log = all.filter(([, , , [name = '']]) => !OWN.includes(name.toLowerCase()))
    const longest = log.toSorted(([, , a], [, , b]) => b - a)[0]
    return {
      slow: log.filter(([, , micros]) => micros >= SLOW_MICROS).length,
      longest: longest
        ? { command: (longest[3][0] ?? '').toUpperCase(), milliseconds: longest[2] / 1_000 }
        : null,
      events: Object.fromEntries(latest.map(([event, , , longestMs]) => [event, longestMs])),
    }
  }

  close(): void {
    this.#redis.disconnect()
  }
}
