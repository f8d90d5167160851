import { parseInfo, parseRedisUrl } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { hideCredentials } from './address.ts'
import { messageOf, Problem } from './problem.ts'

type Info = ReadonlyMap<string, string>

/** Identifies a Redis. */
export interface RedisFacts {
  version: string
  /** Such as `patched-ce8d76da85e6`; null if it is not one of our builds. */
  build: string | null
  /** Threads that read and write sockets, including the main thread; null if unknown. */
  ioThreads: number | null
  pid: number
}

export function factsOf(info: Info): RedisFacts {
  const build = info.get('onetrip_build')
  const key = info.get('onetrip_build_key') ?? 'unknown'
  const threads = [...info.keys()].filter((name) => /^io_thread_\d+$/.test(name)).length
  return {
    version: info.get('redis_version') ?? 'unknown',
    build: build === undefined ? null : `${build}-${key.slice(0, 12)}`,
    ioThreads: threads || null,
    pid: Number(info.get('process_id')),
  }
}

/** `I/O threads off`, `3 I/O threads`, or `I/O threads unknown`. The number includes the main thread; 1 is off. */
export function ioThreadsText(threads: number | null): string {
  if (threads === null) return 'I/O threads unknown'
  return threads === 1 ? 'I/O threads off' : `${threads} I/O threads`
}

/** Counters since the start of the server, without the monitor's own commands. */
export interface RedisReading {
  /** CPU time of the whole process, in seconds. */
  cpuSeconds: number
  /** CPU time of the main thread, in seconds. */
  mainCpuSeconds: number
  connections: number
  commands: number
  /** Reads from sockets; fewer than `commands` if several commands arrive at once. */
  reads: number
  /** Bytes that Redis received, including those of the monitor. */
  netInputBytes: number
  /** Bytes that Redis sent, including those to the monitor. */
  netOutputBytes: number
}

/**
 * The counters of an INFO reply.
 *
 * @param answered number of earlier INFO commands of the monitor. Redis counts a read before, and a command after, it
 *   executes the command: the reply includes `answered` of the monitor's commands, and one more of its reads.
 */
export function readingOf(info: Info, answered: number): RedisReading {
  const number = (name: string) => Number(info.get(name) ?? Number.NaN)
  return {
    cpuSeconds: number('used_cpu_user') + number('used_cpu_sys'),
    mainCpuSeconds: number('used_cpu_user_main_thread') + number('used_cpu_sys_main_thread'),
    connections: number('total_connections_received'),
    commands: number('total_commands_processed') - answered,
    reads: number('total_reads_processed') - answered - 1,
    netInputBytes: number('total_net_input_bytes'),
    netOutputBytes: number('total_net_output_bytes'),
  }
}

/** A connection that monitors a Redis with INFO. */
export class RedisMonitor {
  /** Resolves when the connection is lost; not after `close`. */
  readonly lost: Promise<void>
  readonly #client: Redis
  #answered = 0

  private constructor(client: Redis) {
    this.#client = client
    this.lost = new Promise((resolve) => void client.once('end', () => resolve()))
  }

  /**
   * @param replyTimeoutMs timeout per reply.
   * @throws Problem if there is no Redis at `url`, or if it rejects the credentials or the database.
   */
  static async connect(url: string, replyTimeoutMs = 10_000): Promise<RedisMonitor> {
    const { options } = parseRedisUrl(url)
    const client = new Redis({
      ...options,
      lazyConnect: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 5_000,
      commandTimeout: replyTimeoutMs,
      retryStrategy: () => null,
      connectionName: 'onetrip-load',
    })
    let reason = '' // the error of connect() itself says only that the connection is closed
    client.on('error', (error: Error) => {
      reason = error.message
    })
    const monitor = new RedisMonitor(client)
    try {
      await client.connect()
      if (options.db) await client.select(options.db) // on an error, ioredis would use database 0
      await monitor.facts() // checks the credentials
      return monitor
    } catch (error) {
      if (client.status !== 'end') client.disconnect() // would wait forever for a closed connection
      const why = reason || messageOf(error)
      throw new Problem(`The Redis at ${hideCredentials(url)} cannot be used: ${why}`)
    }
  }

  async facts(): Promise<RedisFacts> {
    const facts = factsOf(await this.#info())
    return { ...facts, ioThreads: facts.ioThreads ?? (await this.#configuredThreads()) }
  }

  /** Whether the server is a primary, not a replica. */
  async isPrimary(): Promise<boolean> {
    return (await this.#info()).get('role') === 'master'
  }

  async read(): Promise<RedisReading> {
    const answered = this.#answered
    return readingOf(await this.#info(), answered)
  }

  /** I/O threads of a Redis before 8, whose INFO does not list them; null without permission for CONFIG GET. */
  async #configuredThreads(): Promise<number | null> {
    const reply = await this.#client.call('CONFIG', 'GET', 'io-threads').catch(() => null)
    return Array.isArray(reply) ? Number(reply[1]) || null : null
  }

  close(): void {
    this.#client.removeAllListeners('end')
    this.#client.disconnect()
  }

  async #info(): Promise<Info> {
    const text = await this.#client.info('everything').catch((cause: Error) => {
      throw new Problem(`Redis does not answer: ${cause.message}`, { cause })
    })
    this.#answered += 1
    return parseInfo(text)
  }
}

/** Identifies the Redis at `url`. @throws Problem as `RedisMonitor.connect`. */
export async function redisFacts(url: string): Promise<RedisFacts> {
  const monitor = await RedisMonitor.connect(url)
  const facts = monitor.facts()
  return await facts.finally(() => monitor.close())
}
