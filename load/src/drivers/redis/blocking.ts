import { redisAddress } from '@onetrip/stack/address.ts'
import { Redis } from 'ioredis'

/** Shorter commands are not in the slow log. */
export const REMEMBERED_MICROS = 200
/** Commands of the watch itself: to clear a slow log of 100,000 entries takes some milliseconds. */
const OWN = ['slowlog', 'latency']

/** Watches a Redis, through a connection of its own, for commands that hold up all others. */
export class BlockingWatch {
  readonly #redis: Redis

  constructor(url: string) {
    this.#redis = new Redis(redisAddress(url).options)
  }

  async begin(): Promise<void> {
    await this.#redis.config(
      'SET',
      ...['latency-monitor-threshold', 1, 'slowlog-max-len', 100_000],
      ...['slowlog-log-slower-than', REMEMBERED_MICROS],
    )
    await this.#redis.slowlog('RESET')
    await this.#redis.latency('RESET') // the last, and read first: the others may take long themselves
  }

  /**
   * What blocked it since `begin`: how many commands ran for 1 ms or longer, the longest one, and the longest
   * of each kind of event of 1 ms or more (LATENCY LATEST), in milliseconds.
   */
  async end() {
    const latest = (await this.#redis.latency('LATEST')) as [string, number, number, number][]
    const all = (await this.#redis.slowlog('GET', -1)) as [number, number, number, [string]][]
    const commands = all
      .map(([, , micros, [command]]) => ({ command, milliseconds: micros / 1_000 }))
      .filter(({ command }) => !OWN.includes(command.toLowerCase()))
      .toSorted((a, b) => b.milliseconds - a.milliseconds)
    return {
      slow: commands.filter(({ milliseconds }) => milliseconds >= 1).length,
      longest: commands[0] ?? null,
      events: Object.fromEntries(latest.map(([event, , , longestMs]) => [event, longestMs])),
    }
  }

  close(): void {
    this.#redis.disconnect()
  }
}
