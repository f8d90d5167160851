import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf, type Program } from '@onetrip/stack/program.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { onTestFinished } from 'vitest'
import { apiFaults, type SoakApi } from './api-faults.ts'
import { startSoakCluster } from './cluster.ts'
import { startOneRedis } from './one-redis.ts'
import { type ApiReading, READ_EVERY_MS, readingIn } from './readings.ts'
import type { Fault, SoakRedis, SoakScope } from './redis.ts'

const insideApi = new URL('inside-api.ts', import.meta.url).href

/** The API's deadline for Redis, in milliseconds. */
const DEADLINE_MS = '1000'
const HOST = '127.0.0.1'
const STOPPED_WITHIN_MS = 60_000

/** The programs of a soak. */
export interface SoakStack {
  /** The addresses of the APIs. */
  readonly urls: readonly string[]
  readonly redis: SoakRedis
  /** The last reading of the first API, which no fault kills. */
  reading(): ApiReading | undefined
  readonly faults: readonly Fault[]
  /** Aborted when a program has ended unexpectedly. */
  readonly signal: AbortSignal
}

/**
 * Starts Redis or a cluster, and two APIs. They are stopped after the current test.
 *
 * @throws Problem, ProgramError.
 */
export async function startSoakStack({
  cluster,
  readEveryMs,
}: {
  cluster: boolean
  readEveryMs: number
}): Promise<SoakStack> {
  const broken = new AbortController()
  const scope: SoakScope = {
    directory: await temporaryFolder(),
    signal: broken.signal,
    fail: (reason) => broken.abort(reason),
    defer: (undo) => onTestFinished(async () => void (await undo()), STOPPED_WITHIN_MS),
  }
  const redis = await (cluster ? startSoakCluster(scope) : startOneRedis(scope))
  const sessionSecret = newSecret()
  let reading: ApiReading | undefined
  const startOne = (port: number, onLine?: (line: string) => void) =>
    startSoakApi(scope, () =>
      startApi({
        variant: 'batch',
        host: HOST,
        port,
        redis: redis.url,
        sessionSecret,
        env: {
          REDIS_DEADLINE_MS: DEADLINE_MS,
          JANITOR_INTERVAL_SECONDS: '10',
          NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${insideApi}`,
          [READ_EVERY_MS]: String(readEveryMs),
        },
        ...(onLine && { onLine }),
        signal: scope.signal,
      }),
    )
  const ports = await freePorts(2)
  const [measuredPort = 0, otherPort = 0] = ports
  const measured = await startOne(measuredPort, (line) => {
    reading = readingIn(line) ?? reading
  })
  const other = await startOne(otherPort)
  return {
    urls: ports.map((port) => apiUrl(HOST, port)),
    redis,
    reading: () => reading,
    faults: [...redis.faults, ...apiFaults(measured, other)],
    signal: scope.signal,
  }
}

async function startSoakApi(
  { fail, defer }: SoakScope,
  start: () => Promise<Program>,
): Promise<SoakApi> {
  let api = await start()
  let isExpected = false
  const watch = (program: Program) =>
    void program.exited.then(async () => isExpected || fail(await endOf(program)))
  watch(api)
  defer(async () => {
    isExpected = true
    await api.stop()
  })
  return {
    signal: (signal) => api.signal(signal),
    async killAndRestart() {
      isExpected = true
      api.signal('SIGKILL')
      await api.exited
      api = await start()
      watch(api)
      isExpected = false
    },
  }
}
