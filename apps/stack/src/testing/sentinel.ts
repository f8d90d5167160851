import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePorts } from '../ports.ts'
import { type Program, startProgram } from '../program.ts'
import { buildRedis, startRedis } from '../start-redis.ts'
import { until } from '../until.ts'

/** The name of the monitored primary. */
export const MASTER_NAME = 'mymaster'

export interface WatchedServer {
  readonly port: number
  /** A connection to this server, in any role. */
  readonly admin: Redis
  readonly program: Program
}

export interface TestSentinels {
  /** The first one is the primary when the test begins. */
  readonly servers: readonly WatchedServer[]
  readonly sentinels: readonly { readonly port: number; readonly program: Program }[]
  /** The port of the current primary, as reported by the sentinels. */
  masterPort(): Promise<number>
  /** Whether so many sentinels name the same primary, and all other servers that run replicate it. */
  agree(count: number): Promise<boolean>
  stop(): Promise<void>
}

/**
 * Starts a primary and its replicas on loopback, and three sentinels that fail over after three seconds.
 *
 * @param options `password`: password of the sentinels. `replicas`: 1 by default.
 */
export async function testSentinels({
  replicas = 1,
  ...options
}: {
  password?: string
  replicas?: number
} = {}): Promise<TestSentinels> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-sentinel-'))
  const ports = await freePorts(1 + replicas + 3)
  const servers = await Promise.all(
    ports.slice(0, -3).map(async (port) => {
      const [socket, data] = [join(directory, `${port}.sock`), join(directory, String(port))]
      const program = await startRedis({ port, socket, directory: data })
      const admin = new Redis(socket, { maxRetriesPerRequest: null })
      admin.on('error', () => {}) // while the server is down
      return { port, program, admin }
    }),
  )
  const [primary, ...others] = servers
  if (!primary) throw new Error('there is a primary')
  await Promise.all(others.map(({ admin }) => admin.replicaof('127.0.0.1', primary.port)))

  const folder = await buildRedis('patched')
  const sentinels = await Promise.all(
    ports.slice(-3).map(async (port) => {
      const data = join(directory, String(port))
      await mkdir(data)
      const file = join(data, 'sentinel.conf')
      await writeFile(file, configuration(port, data, primary.port, options.password))
      const program = await startProgram({
        name: 'Sentinel',
        command: process.env.REDIS_SERVER || join(folder, 'redis-server'),
        args: [file, '--sentinel'],
        ready: /\+monitor master/,
        readyTimeoutMs: 30_000,
      })
      const admin = new Redis(port, { ...options, commandTimeout: 2_000 })
      admin.on('error', () => {})
      return { port, program, admin }
    }),
  )

  /** For example `master0:name=mymaster,status=ok,address=127.0.0.1:6379,slaves=1,sentinels=3`. */
  const viewOf = ({ admin }: (typeof sentinels)[number]) => admin.info('sentinel')
  const masterPort = async () => {
    const running = sentinels.find(({ admin }) => admin.status === 'ready')
    const view = running ? await viewOf(running) : ''
    return Number(/address=[^:]+:(\d+)/.exec(view)?.[1])
  }
  const agree = async (count: number) => {
    const port = await masterPort()
    const views = await Promise.all(sentinels.map((one) => viewOf(one).catch(() => '')))
    const agreed = `status=ok,address=127.0.0.1:${port},slaves=${replicas},sentinels=3`
    const following = servers.filter((one) => one.port !== port && one.admin.status === 'ready')
    const links = await Promise.all(following.map(({ admin }) => admin.info('replication')))
    return (
      views.filter((view) => view.includes(agreed)).length >= count &&
      links.every((link) => link.includes(`:${port}\r\nmaster_link_status:up`))
    )
  }
  if (!(await until(() => agree(3), { timeoutMs: 90_000 })))
    throw new Error('the sentinels do not agree')

  return {
    servers,
    sentinels,
    masterPort,
    agree,
    async stop() {
      const all = [...sentinels, ...servers]
      for (const { admin, program } of all) {
        admin.disconnect()
        program.signal('SIGCONT')
      }
      await Promise.all(all.map(({ program }) => program.stop()))
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const configuration = (port: number, data: string, primaryPort: number, password?: string) =>
  [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${data}`,
    ...(password ? [`requirepass ${password}`, `sentinel sentinel-pass ${password}`] : []),
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 3000`,
    `sentinel failover-timeout ${MASTER_NAME} 5000`,
    '',
  ].join('\n')
