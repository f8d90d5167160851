import { readdir } from 'node:fs/promises'
import { freePorts } from '@onetrip/stack/ports.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { type RelayProcess, startRelay } from '@onetrip/stack/relay/process.ts'
import { audit } from '@onetrip/stack/testing/audit/audit.ts'
import { Ledger, type View, type Viewer } from '@onetrip/stack/testing/audit/ledger.ts'
import { type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { logIn, startViewing, type Viewing } from '@onetrip/stack/testing/viewing.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import { startApiProcess } from '../test/api-process.ts'

const DEADLINE_MS = 1_000
/** Added to the deadline for a busy machine: only a request that hangs exceeds it. */
const MARGIN_MS = 30_000
const VIEWERS = 8

/** A Redis, an API process, and clients that send views continuously. */
export interface Testbed {
  readonly redis: TestRedis
  /** Bypasses the relay; has all permissions. */
  readonly admin: Redis
  readonly relay: RelayProcess | undefined
  readonly viewing: Viewing
  readonly api: Program
  /** Waits until the API has ended, and starts it on the same port. */
  restartApi(): Promise<void>
  /** Client ids of the API's connections to Redis, for CLIENT KILL. */
  connections(): Promise<string[]>
  /**
   * Waits until views are acknowledged again, stops the load, and checks the audit, all response times, and
   * that nothing is left behind.
   */
  settle(): Promise<readonly View[]>
}

export interface TestbedOptions {
  strategy?: string
  relay?: boolean
}

/** Starts a testbed, which is stopped when the current test ends. */
export async function startTestbed(options: TestbedOptions = {}): Promise<Testbed> {
  const redis = await testRedis({ config: { appendfsync: 'always' } })
  onTestFinished(() => redis.stop())
  const relay = options.relay ? await startRelay({ to: redis.socket }) : undefined
  if (relay) onTestFinished(() => relay.stop())
  const [port = 0] = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const lines: string[] = []
  const startApi = () =>
    startApiProcess(
      {
        PORT: String(port),
        STRATEGY: options.strategy ?? 'batch',
        REDIS_URL: relay ? `redis://${relay.address}` : `unix://${redis.socket}`,
        REDIS_DEADLINE_MS: String(DEADLINE_MS),
        JANITOR_INTERVAL_SECONDS: '0',
      },
      { onLine: (line) => lines.push(line) },
    )
  let api = await startApi()
  onTestFinished(async () => void (await api.stop()))
  const admin = new Redis(redis.socket, { maxRetriesPerRequest: null })
  admin.on('error', () => {}) // caused by the test
  onTestFinished(() => admin.disconnect())
  const viewers = await logIn(url, VIEWERS)
  const viewing = startViewing({ url: () => url, viewers })
  onTestFinished(async () => void (await viewing.stop().catch(() => {})))
  await viewing.next(({ outcome }) => outcome === 'acknowledged')

  const connections = async () => {
    const own = String(await admin.client('ID'))
    const clients = String(await admin.client('LIST')).split('\n')
    return clients
      .filter((client) => client.includes('lib-name=ioredis'))
      .map((client) => /\bid=(\d+)/.exec(client)?.[1] ?? '')
      .filter((id) => id !== own)
  }

  return {
    redis,
    admin,
    relay,
    viewing,
    get api() {
      return api
    },
    async restartApi() {
      await api.exited
      api = await startApi()
    },
    connections,
    async settle() {
      await viewing.next(({ outcome }) => outcome === 'acknowledged')
      const views = await viewing.stop()
      expect((await audit(admin, Ledger.of(views))).discrepancies).toEqual([])
      const slowest = Math.max(...views.map(({ milliseconds }) => milliseconds))
      expect(slowest).toBeLessThan(DEADLINE_MS + MARGIN_MS)
      await expectNothingLeft({ api, admin, connections, viewers, lines })
      return views
    },
  }
}

interface Remains {
  api: Program
  admin: Redis
  connections: Testbed['connections']
  viewers: readonly Viewer[]
  lines: readonly string[]
}

/** Stops the API. It must exit cleanly, leave no connection, and have logged no token. */
async function expectNothingLeft(remains: Remains): Promise<void> {
  const { api, connections, viewers, lines } = remains
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  await expect(readdir(`/proc/${api.pid}`)).rejects.toThrow('ENOENT')
  await expect.poll(connections).toEqual([])
  const log = lines.join('\n')
  expect(log).not.toContain('shutting down after an unexpected error')
  for (const { token } of viewers) expect(log).not.toContain(token)
}

export const answered =
  (answer: string) =>
  (view: View): boolean =>
    view.answer === answer
