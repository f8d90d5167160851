import { rm } from 'node:fs/promises'
import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import { newSecret, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { requireBuild } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import { IO_THREADS } from '../../experiment/result.ts'
import { apiFaults } from './api-faults.ts'
import { startSoakCluster } from './cluster.ts'
import { startOneRedis } from './one-redis.ts'
import { type ApiReading, READ_EVERY_MS, readingIn } from './readings.ts'
import type { Fault, SoakRedis } from './redis.ts'

const insideApi = new URL('inside-api.ts', import.meta.url).href

/** The API's deadline for Redis, in milliseconds. */
const DEADLINE_MS = '1000'
const HOST = '127.0.0.1'

/** The programs of a soak. */
export interface SoakStack {
  /** The address of the API. */
  readonly url: string
  readonly redis: SoakRedis
  /** The last reading of each process of the API, by its name: `primary`, `1`, `2`. */
  readonly apis: ReadonlyMap<string, ApiReading>
  readonly faults: readonly Fault[]
}

/** Starts Redis or a cluster, and an API with two workers. @throws Problem, ProgramError. */
export async function startSoakStack(
  { signal, defer, fail, describe }: Context,
  { cluster, readEveryMs }: { cluster: boolean; readEveryMs: number },
): Promise<SoakStack> {
  await requireBuild('patched', signal)
  const directory = await temporaryRunFolder('soak-')
  defer(() => rm(directory, { recursive: true, force: true }))
  const scope = { directory, signal, defer, fail }
  const redis = await (cluster ? startSoakCluster(scope) : startOneRedis(scope))
  const { version, build, ioThreads } = redis.facts
  describe('software', { Redis: `${version} ${build ?? 'patched'}` })
  describe('load', { [IO_THREADS]: ioThreads })
  const apis = new Map<string, ApiReading>()
  const [port = 0] = await freePorts(1)
  const api = await startApi({
    variant: 'batch',
    application: 'demo', // the traffic also counts viewers
    host: HOST,
    port,
    redis: redis.url,
    sessionSecret: newSecret(),
    env: {
      WORKERS: '2',
      REDIS_DEADLINE_MS: DEADLINE_MS,
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
  let isStopping = false
  void api.exited.then(async () => isStopping || fail(await endOf(api)))
  defer(async () => {
    isStopping = true
    await api.stop()
  })
  return { url: apiUrl(HOST, port), redis, apis, faults: [...redis.faults, ...apiFaults(apis)] }
}
