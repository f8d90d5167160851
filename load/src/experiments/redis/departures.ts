import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import { Problem } from '@onetrip/stack/problem.ts'
import type { RedisBuild } from '@onetrip/stack/start-redis.ts'
import { until } from '@onetrip/stack/until.ts'
import { Redis } from 'ioredis'
import { cpuDuring } from '../../drivers/redis/cost.ts'
import { generateLoad, holdConnections } from '../../drivers/redis/generator/load.ts'
import { errors, range, ratio } from '../../reporting/columns.ts'
import { product } from '../../rounds/shape.ts'
import type { Preset } from './redis.ts'

const FIN = 'end of their process'
const KILL = 'CLIENT KILL'
/** The clients are those of another, stopped Redis: the wait is for cores and the kernel, not for the Redis measured. */
const ELSEWHERE = 'end, of another Redis'
/** Their user, whom CLIENT KILL names: other filters cost system calls. */
const USER = 'leaving'

/** PINGs per second of the client that stays. */
const RATE = 1_000
const LEAVE_MS = 120_000
/** Redis may free clients after they have left its list: for so long, and longer for each of them. */
const [FREED_MS, FREED_MS_EACH] = [100, 0.05]

/** What the others notice when many clients leave at once. */
export const departures: Preset = {
  name: 'redis departures',
  title: 'Redis: many clients leave at once',
  summary: 'the longest wait of another client when thousands of clients leave at once',
  about: `
Idle clients leave at the same moment: their process is killed, so that the kernel closes (FIN) all of their connections, or
an operator ends them with CLIENT KILL USER. Meanwhile another client sends ${RATE} PINGs per second; a PING's latency counts
from when it is due, so the longest one shows for how long Redis served nobody. The CPU time per client that left is
that of the departure, less that of as many seconds with PINGs only.
In the case "${ELSEWHERE}", the process has its connections to a Redis that is stopped: what is left of the wait is not
that of the Redis measured, but of the kernel and of programs that share its cores.

Examples:
  npm run load -- redis departures --idle 2000 --threads 1 --builds stock,patched`,
  duration: 0.5,
  quick: { rounds: 1, duration: 0.3, idle: [2_000] },
  settings: { builds: ['baseline', 'stock', 'patched'], threads: [1, 2], idle: [2_000, 10_000] },

  factors: ['departure', 'leaving', 'threads', 'build'],
  subject: 'build',
  progress: ['max', 'mainCpuMicros'],
  baseline: () => ({ build: 'stock' }),

  // Their descriptors are those of the holder. Redis starts without them, so that all cases share it.
  server: ({ idle }) => ({ busy: Math.max(...idle), idle: [0] }),
  cases: ({ idle }) => product({ departure: [FIN, KILL, ELSEWHERE], leaving: idle }),

  async measure({ departure, leaving, threads, build }, { server, target }, { options, context }) {
    const { signal } = context
    const count = Number(leaving)
    const admin = new Redis(server.socket)
    await admin.call('ACL', 'SETUSER', USER, 'on', 'nopass')
    const config = { maxclients: String(count + 100), 'io-threads': String(threads) }
    const other =
      departure === ELSEWHERE
        ? await context.startRedis({ build: build as RedisBuild, config })
        : null
    const holder = other
      ? await holdConnections({ port: other.port }, count, signal)
      : await holdConnections(target, count, signal, ['AUTH', USER, ''])
    if (other) process.kill(other.pid, 'SIGSTOP')
    const done = new AbortController()
    const pings = generateLoad({
      target: { socket: server.socket },
      mode: 'long',
      connections: 1,
      rate: RATE,
      command: ['PING'],
      end: {},
      signal: AbortSignal.any([signal, done.signal]),
    })
    pings.catch(() => {}) // awaited below
    const clients = async () =>
      Number(parseInfo(await admin.info('clients')).get('connected_clients'))
    const hasLeft = async () => (await clients()) <= 2
    const rest = (milliseconds: number) => delay(milliseconds, null, { signal })
    try {
      const { cpu: before } = await cpuDuring(server, () => rest(options.duration * 1_000))
      const { cpu } = await cpuDuring(server, async () => {
        if (departure === KILL) {
          holder.signal('SIGSTOP') // it would compete with Redis for cores
          await admin.call('CLIENT', 'KILL', 'USER', USER)
        } else holder.signal('SIGKILL')
        if (!(await until(hasLeft, { timeoutMs: LEAVE_MS, everyMs: 20, signal }))) {
          throw new Problem(`Redis still has clients ${LEAVE_MS / 1_000} s after they left.`)
        }
        await rest(FREED_MS + FREED_MS_EACH * count)
      })
      done.abort()
      const { latency, errors } = await pings
      const perClient = (of: 'cpuSeconds' | 'mainCpuSeconds') =>
        ((cpu[of] - (before[of] * cpu.seconds) / before.seconds) * 1e6) / count
      const costs = {
        mainCpuMicros: perClient('mainCpuSeconds'),
        cpuMicros: perClient('cpuSeconds'),
      }
      return { values: { max: latency.max, p99: latency.p99, ...costs }, errors }
    } finally {
      done.abort()
      admin.disconnect()
      holder.signal('SIGKILL')
      if (other) process.kill(other.pid, 'SIGCONT')
      await Promise.allSettled([pings, holder.stop(), other?.stop()])
    }
  },

  sections: () => [
    {
      title: 'When many clients leave at once',
      caption: `Another client sends ${RATE} PINGs per second; CPU time per client that left`,
      columns: [
        range('max', 'longest wait ms'),
        ratio('max', '× stock'),
        range('mainCpuMicros', 'main thread CPU µs /client'),
        range('cpuMicros', 'all threads CPU µs /client'),
        errors,
      ],
    },
  ],
}
