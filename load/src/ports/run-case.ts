import { cpuBetween } from '../drivers/redis/threads.ts'
import type { Context } from '../redis/experiment.ts'
import type { Case } from './cases.ts'
import { allWaiting, OTHER_ADDRESS, setNetwork, timeWaitOf } from './network.ts'
import { callSteadily } from './pace.ts'
import { kindOf, storeBy } from './ways.ts'

export interface PortsOptions {
  /** Ports that clients may have. */
  ports: number
  /** Views asked for per second. */
  rate: number
  /** Seconds per case. */
  duration: number
}

/** The state after so many seconds. */
interface Moment {
  seconds: number
  /** Clients' ports in TIME_WAIT. */
  waiting: number
}

export interface CaseRun extends Case {
  ports: number
  seconds: number
  /** Views that were recorded. */
  ok: number
  /** Views that failed, by what the kernel said. */
  errors: Record<string, number>
  /** When connecting first failed with EADDRNOTAVAIL, and how many connections there were by then. */
  first: { seconds: number; connections: number } | null
  /** Views per second before that, or all the time; and after it. */
  rateBefore: number
  rateAfter: number | null
  timeline: Moment[]
  /** Connections that were in TIME_WAIT at the end with their port on Redis's side. */
  waitingAtServer: number
  /** CPU time of Redis, all threads, per recorded view. */
  redisCpuMicros: number
}

export const EXHAUSTED = 'EADDRNOTAVAIL'

const FIRST_PORT = 20_000
const FOR_SERVERS = { first: 61_000, last: 65_000 }
const SAMPLE_MS = 100
const AT_ONCE = 200

/** Of the ports: it is those that wait which shall use them up, not those of open connections. */
const MOST_OPEN = 1 / 3

/** Plenty, so that it limits nothing unless that is what is shown. */
const ANY_NUMBER = 262_144

/** Runs a client against a Redis of its own, whose connections no other case has seen. */
export async function runCase(
  context: Context,
  { ports: wanted, rate, duration }: PortsOptions,
  given: Case,
): Promise<CaseRun> {
  const ports = wanted * given.portsFactor
  // Those that the case before has used up are no good to listen on either.
  await setNetwork({ ports: FOR_SERVERS, reuse: 0, maxTimeWait: ANY_NUMBER })
  const server = await context.startRedis({
    build: 'patched',
    config: given.otherAddress ? { bind: OTHER_ADDRESS, 'protected-mode': 'no' } : {},
  })
  const host = given.otherAddress ? OTHER_ADDRESS : '127.0.0.1'
  await setNetwork({
    ports: { first: FIRST_PORT, last: FIRST_PORT + ports - 1 },
    reuse: given.reuse,
    // Those of the cases before count, too.
    maxTimeWait: given.mayWait ? given.mayWait * ports + (await allWaiting()) : ANY_NUMBER,
  })
  const store = storeBy(given.way, `redis://${host}:${server.port}`)
  const timeline: Moment[] = []
  const errors: Record<string, number> = {}
  let ok = 0
  let first: CaseRun['first'] = null
  try {
    await store.ready()
    const token = await tokenOf(store)
    const startedAt = performance.now()
    const elapsed = () => (performance.now() - startedAt) / 1_000
    const look = async () => {
      timeline.push({ seconds: elapsed(), waiting: (await timeWaitOf(server.port)).clients })
    }
    const before = await server.cpu()
    const looking = setInterval(() => {
      void look()
      context.progress.update(`${ok} views, ${errors[EXHAUSTED] ?? 0} without a port`)
    }, SAMPLE_MS)
    try {
      await callSteadily(
        async () => {
          try {
            await store.recordView(token, 'item')
            ok++
          } catch (error) {
            const kind = kindOf(error)
            errors[kind] = (errors[kind] ?? 0) + 1
            if (kind === EXHAUSTED) first ??= { seconds: elapsed(), connections: ok }
          }
        },
        {
          ...{ perSecond: rate, seconds: duration, signal: context.signal },
          atOnce: Math.min(AT_ONCE, Math.floor(MOST_OPEN * ports)),
        },
      )
    } finally {
      clearInterval(looking)
    }
    await look()
    const seconds = elapsed()
    const { cpuSeconds } = cpuBetween(before, await server.cpu())
    return {
      ...given,
      ports,
      seconds,
      ok,
      errors,
      first,
      ...rates(ok, seconds, first),
      timeline,
      waitingAtServer: (await timeWaitOf(server.port)).server,
      redisCpuMicros: (cpuSeconds * 1e6) / Math.max(1, ok),
    }
  } finally {
    await store.close()
    await server.stop()
  }
}

async function tokenOf(store: ReturnType<typeof storeBy>): Promise<string> {
  return (await store.login('ada')).token
}

function rates(ok: number, seconds: number, first: CaseRun['first']) {
  if (!first) return { rateBefore: ok / seconds, rateAfter: null }
  return {
    rateBefore: first.connections / first.seconds,
    rateAfter: (ok - first.connections) / Math.max(0.001, seconds - first.seconds),
  }
}
