import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { parseInfo } from '@onetrip/session-store'
import { until } from '@onetrip/stack/until.ts'
import { Redis } from 'ioredis'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { range } from '../../../reporting/columns.ts'
import type { Preset } from '../redis.ts'
import type { Reading, Work } from './client.ts'

/** A client, and the way in which it reads replies. */
interface Mode extends Pick<Work, 'reads'> {
  name: string
  atOnce?: number
}

/** The settings that limit the memory of clients. Other settings have Redis's defaults. */
const settingsFor = (client: string, limit: string) => ({
  'client-output-buffer-limit': `normal ${client === 'output-limit' ? limit : 0} 0 0`,
  'maxmemory-clients': client === 'client-memory' ? limit : '0',
  maxmemory: client === 'maxmemory' ? limit : '0',
  'maxmemory-policy': 'noeviction',
})

const modes: Readonly<Record<string, Mode>> = {
  unlimited: { name: 'not read, no limit', reads: 'nothing' },
  'output-limit': { name: 'not read, client-output-buffer-limit', reads: 'nothing' },
  'client-memory': { name: 'not read, maxmemory-clients', reads: 'nothing' },
  maxmemory: { name: 'not read, maxmemory (noeviction)', reads: 'nothing' },
  'one-pipeline': { name: 'read immediately, one pipeline', reads: 'all' },
  pipelines: { name: 'read immediately, pipelines of 100', reads: 'all', atOnce: 100 },
  store: { name: 'our store, 500 calls in flight', reads: 'store', atOnce: 500 },
  'store-at-once': { name: 'our store, all calls at once', reads: 'store' },
}

const limitMegabytes = (megabytes: unknown) => Math.round(Number(megabytes) / 4)

/** The memory of unread replies, with different limits. */
export const slowReader: Preset = {
  name: 'redis slow-reader',
  title: 'Redis: unread replies',
  summary: 'memory of Redis with a client that does not read its replies',
  about: `
A plain socket sends GET, MGET, HGETALL and LRANGE at a constant rate for --duration seconds. Each reply has 10 kB,
and the client does not read them. The cases are: no limits; a limit on the replies for one client
(client-output-buffer-limit), on the memory of all clients (maxmemory-clients), and on all memory (maxmemory). The
limits are a quarter of the requested bytes. Another client writes a key every 25 ms.

A client that reads every reply immediately sends the same commands in one pipeline and in pipelines of 100. The
store reads about as many bytes with 500 calls in flight, and with all calls at once, while its thread is blocked
once for 0.3 s. The result is the memory that Redis allocates (used_memory), read every 2 ms.

Examples:
  npm run load -- redis slow-reader --megabytes 256 --rounds 1`,
  duration: 1,
  quick: { rounds: 1, duration: 0.5 },
  settings: { builds: ['patched'], threads: [1], megabytes: 64 },

  factors: [
    { name: 'client', label: 'client and setting', text: (name) => modes[name]?.name ?? '' },
    'threads',
    'build',
  ],
  subject: 'client',
  progress: ['addedMegabytes'],

  server: () => ({ busy: 1 }),
  cases: () => Object.keys(modes).map((client) => ({ client })),

  async measure({ client }, { server }, { options, context: { signal } }) {
    const { reads, atOnce = Number.POSITIVE_INFINITY } = modes[String(client)] as Mode
    const { megabytes, duration } = options
    const settings = settingsFor(String(client), `${limitMegabytes(megabytes)}mb`)
    const work = { reads, atOnce, megabytes, sendMs: duration * 1_000 }
    return { values: await readFrom(server, work, settings, signal) }
  },

  sections: (_, { options: { megabytes } }) => [
    {
      title: 'Memory of unread replies',
      caption: `Growth of Redis's memory; ${megabytes} MB of replies, limits of ${limitMegabytes(megabytes)} MB`,
      columns: [
        range('addedMegabytes'),
        'readMegabytes',
        'closedAfter',
        'refusedWrites',
        'refusedCalls',
      ],
    },
  ],
}

/** Runs the client in its thread, with these settings of Redis. */
async function readFrom(
  { socket, port }: RedisServer,
  work: Work,
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
) {
  const redis = new Redis(socket)
  const worker = new Worker(new URL('./client.ts', import.meta.url), { workerData: { port } })
  const answer = async () => (await once(worker, 'message', { signal }))[0]
  try {
    await redis.config('SET', 'maxmemory', '0') // the limit of the previous case
    await answer() // ready
    await redis.config('SET', ...Object.entries(settings).flat())
    return await watchMemory(redis, signal, async (): Promise<Reading> => {
      worker.postMessage(work)
      return await answer()
    })
  } finally {
    redis.disconnect()
    await worker.terminate()
  }
}

const LOOK_MS = 2
const WRITE_MS = 25
const SETTLE_MS = 5_000

/**
 * Measures a server's memory during `work`, and writes a key every 25 ms like another client.
 *
 * @param redis the only connection to the server before `work`.
 * @returns `addedMegabytes`: the largest growth of allocated memory, including unread replies; `closedAfter`: seconds
 *   until the server closed a client because of a limit, or null; `refusedWrites`: the share of refused writes; and
 *   the result of `work`.
 * @throws the error of `work`; an Error when other clients stay connected.
 */
async function watchMemory<Result>(redis: Redis, signal: AbortSignal, work: () => Promise<Result>) {
  const isAlone = async () => (await look(redis)).clients === 1
  if (!(await until(isAlone, { timeoutMs: SETTLE_MS, everyMs: LOOK_MS, signal }))) {
    throw new Error('other clients are still connected to the server')
  }
  const before = await look(redis)
  const start = performance.now()
  let closedAfter = null as number | null
  let [added, writes, refused] = [0, 0, 0]
  let isDone = false
  const watch = async () => {
    while (!isDone) {
      const now = await look(redis)
      const ms = performance.now() - start
      added = Math.max(added, now.used - before.used)
      if (now.closed > before.closed) closedAfter ??= ms / 1_000
      if (ms >= writes * WRITE_MS) {
        writes++
        await redis.set('slow-reader:other', 'x').catch((error: Error) => {
          if (!error.message.startsWith('OOM')) throw error
          refused++
        })
      }
      await delay(LOOK_MS)
    }
  }
  const worked = work().finally(() => {
    isDone = true
  })
  const watched = watch()
  // Wait for both even if one fails, so that no work continues in the next run.
  await Promise.allSettled([worked, watched])
  const [result] = await Promise.all([worked, watched])
  return {
    addedMegabytes: added / 2 ** 20,
    closedAfter,
    refusedWrites: refused / writes,
    ...result,
  }
}

async function look(redis: Redis) {
  const fields = parseInfo(await redis.info('clients', 'memory', 'stats'))
  const number = (name: string) => Number(fields.get(name))
  return {
    clients: number('connected_clients'),
    used: number('used_memory'),
    closed: number('client_output_buffer_limit_disconnections') + number('evicted_clients'),
  }
}
