import { rm } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { documentKeys, type Keys } from '@onetrip/session-store'
import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import type { AuditedRedis } from '@onetrip/stack/audit/audit.ts'
import { newSecret, socketIn, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf, type Program } from '@onetrip/stack/program.ts'
import { startRedis } from '@onetrip/stack/redis.ts'
import { type RelayProcess, startRelay } from '@onetrip/stack/relay/process.ts'
import { Redis } from 'ioredis'
import { requireBuild } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import { type ApiReading, READ_EVERY_MS, readingIn } from './readings.ts'

const insideApi = pathToFileURL(fileURLToPath(new URL('inside-api.ts', import.meta.url))).href

/** Views may take so long, with and without an answer from Redis. */
const DEADLINE_MS = 1_000
const HOST = '127.0.0.1'

/** What runs in a soak. */
export interface SoakStack {
  /** Of the API, which has two workers. */
  readonly url: string
  /** Past the relay. Waits while Redis is away. */
  readonly redis: Redis & AuditedRedis
  readonly keys: Keys
  /** The last reading of each process of the API, by its name: `primary`, `1`, `2`. */
  readonly apis: ReadonlyMap<string, ApiReading>
  readonly api: Program
  /** Between the API and Redis. */
  readonly relay: RelayProcess
  readonly redisProgram: Program
  /** Kills Redis and starts it on the same data. */
  restartRedis(): Promise<void>
}

/** Starts Redis, a relay in front of it, and the API. @throws Problem, ProgramError. */
export async function startSoakStack(context: Context, readEveryMs: number): Promise<SoakStack> {
  const { signal, defer } = context
  await requireBuild('patched', signal)
  const directory = await temporaryRunFolder('soak-')
  defer(() => rm(directory, { recursive: true, force: true }))
  const socket = await socketIn(directory)
  defer(socket.remove)
  let stopping = false
  const watch = (program: Program) =>
    void program.exited.then(async () => stopping || context.fail(await endOf(program)))

  let restarting = false
  // An answer means that the write is on the disk, so nothing that was acknowledged may be lost.
  const start = () =>
    startRedis({ socket: socket.path, directory, config: { appendfsync: 'always' } })
  let program = await start()
  const watchRedis = (redis: Program) =>
    void redis.exited.then(async () => stopping || restarting || context.fail(await endOf(redis)))
  watchRedis(program)
  defer(async () => {
    program.signal('SIGCONT') // a stopped process takes SIGTERM only when it goes on
    await program.stop()
  })
  const relay = await startRelay({ to: socket.path, signal })
  defer(() => relay.stop())
  watch(relay.program)

  const apis = new Map<string, ApiReading>()
  const [port = 0] = await freePorts(1)
  const api = await startApi({
    variant: 'batch',
    host: HOST,
    port,
    redisUrl: `redis://${relay.address}`,
    sessionSecret: newSecret(),
    env: {
      WORKERS: '2',
      REDIS_DEADLINE_MS: String(DEADLINE_MS),
      JANITOR_INTERVAL_SECONDS: '10',
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${insideApi}`,
      [READ_EVERY_MS]: String(readEveryMs),
    },
    onLine(line) {
      const reading = readingIn(line)
      if (reading) apis.set(reading.worker, reading)
    },
    signal,
  })
  defer(async () => void (await api.stop()))
  watch(api)
  const redis = new Redis(socket.path, { maxRetriesPerRequest: null })
  redis.on('error', () => {}) // the faults
  defer(() => redis.disconnect())
  defer(() => {
    stopping = true
  })
  return {
    url: apiUrl(HOST, port),
    redis,
    keys: documentKeys,
    apis,
    api,
    relay,
    get redisProgram() {
      return program
    },
    async restartRedis() {
      restarting = true
      program.signal('SIGKILL')
      await program.exited
      program = await start()
      watchRedis(program)
      restarting = false
    },
  }
}
