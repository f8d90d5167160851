import { parseLocation } from '@onetrip/cluster'
import { parseRedisUrl } from '@onetrip/session-store'
import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { isAlive } from '@onetrip/stack/processes.ts'
import type { Program } from '@onetrip/stack/program.ts'
import type { WireInput } from '../events.ts'

/** An API with a strategy, used only by the demo. */
export interface Lane {
  readonly index: number
  readonly strategy: string
  readonly url: string
  readonly api: Program
}

/** A relay in front of Redis. */
interface Link {
  /** `host:port` */
  readonly address: string
  close(): Promise<unknown>
}

export interface LanesOptions {
  redis: string
  sessionSecret: string
  /**
   * Opens a link to Redis at `to` (`host:port` or a path). If it returns undefined, the API connects to Redis
   * directly. Not called on a cluster, where APIs always connect directly.
   */
  openLink(to: string, distanceMs: number, lane: number): Promise<Link | undefined>
}

const HOST = '127.0.0.1'
const IDLE_MS = 300_000
/** Time for requests in flight when a lane is stopped. */
const GRACE_MS = 1_000

/** Turns off everything that would disturb a measurement or that a lane does not need. */
const settings = {
  REDIS_POOL_SIZE: '1',
  JANITOR_INTERVAL_SECONDS: '0',
  MAX_SESSIONS: '10000000', // the default: without a janitor, the API refuses another value
  DOCS: 'false',
  LOG_LEVEL: 'error',
  OTEL_EXPORTER_OTLP_ENDPOINT: '',
}

/** An API per lane. They are reused for the same settings, and stopped after five idle minutes. */
export class Lanes {
  readonly #options: LanesOptions
  #kept:
    | { key: string; lanes: readonly Lane[]; undo: AsyncDisposableStack; areNew: boolean }
    | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(options: LanesOptions) {
    this.#options = options
  }

  /**
   * Calls `work` with the lanes. Calls must not overlap.
   *
   * @param starting called before lanes are started.
   * @throws ProgramError if an API or a relay does not start; errors of `work`; the reason of `signal`.
   */
  async use<Result>(
    wanted: WireInput,
    { signal, starting }: { signal: AbortSignal; starting?: () => void },
    work: (lanes: readonly Lane[], areNew: boolean) => Promise<Result>,
  ): Promise<Result> {
    clearTimeout(this.#idle)
    try {
      const key = JSON.stringify([wanted.lanes, wanted.distanceMs])
      const isKept =
        this.#kept?.key === key && this.#kept.lanes.every(({ api }) => isAlive(api.pid))
      if (!this.#kept || !isKept) {
        starting?.()
        await this.stop()
        this.#kept = { key, ...(await this.#start(wanted, signal)), areNew: true }
      }
      const { lanes, areNew } = this.#kept
      this.#kept.areNew = false
      return await work(lanes, areNew)
    } finally {
      this.#idle = setTimeout(() => void this.stop(), IDLE_MS)
    }
  }

  /** Starts lanes in advance if none are kept. Calls must not overlap, also not with `use`. Rejects as `use`. */
  async prepare(wanted: WireInput, signal: AbortSignal): Promise<void> {
    if (this.#kept) return
    await this.use(wanted, { signal }, async () => {})
    if (this.#kept) Object.assign(this.#kept, { areNew: true })
  }

  /** Stops all lanes. Must not be called while they are in use. */
  async stop(): Promise<void> {
    clearTimeout(this.#idle)
    const kept = this.#kept
    this.#kept = undefined
    await kept?.undo.disposeAsync()
  }

  async #start({ lanes, distanceMs }: WireInput, signal: AbortSignal) {
    await using undo = new AsyncDisposableStack()
    const ports = await freePorts(lanes.length)
    const start = async (strategy: string, index: number): Promise<Lane> => {
      const { redis, sessionSecret, openLink } = this.#options
      const link = parseLocation(redis).cluster
        ? undefined
        : await openLink(addressOf(redis), distanceMs, index)
      if (link) undo.defer(async () => void (await link.close()))
      signal.throwIfAborted()
      const port = ports[index] ?? 0
      const api = await startApi({
        variant: strategy,
        host: HOST,
        port,
        redis: link ? through(link, redis) : redis,
        sessionSecret,
        env: settings,
        signal,
      })
      undo.defer(async () => void (await api.stop(GRACE_MS)))
      return { index, strategy, url: apiUrl(HOST, port), api }
    }
    const started = await Promise.allSettled(lanes.map(start))
    for (const result of started) if (result.status === 'rejected') throw result.reason
    const values = started.map((result) => (result as { value: Lane }).value)
    return { lanes: values, undo: undo.move() }
  }
}

/** `host:port`, or the path of a Unix socket. */
function addressOf(redisUrl: string): string {
  const { path, host, port } = parseRedisUrl(redisUrl).options
  return path ?? `${host?.includes(':') ? `[${host}]` : host}:${port}`
}

/** The URL of the same Redis through a link. */
function through({ address }: Link, redisUrl: string): string {
  const { username, password, db } = parseRedisUrl(redisUrl).options
  const url = new URL(`redis://${address}/${db ?? ''}`)
  url.username = encodeURIComponent(username ?? '')
  url.password = encodeURIComponent(password ?? '')
  return url.href
}
