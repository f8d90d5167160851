import { setTimeout as delay } from 'node:timers/promises'
import { SessionStore } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { sendingOf } from '../../compared-strategies.ts'
import { cpuDuring } from '../../drivers/redis/cost.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Run } from '../../experiment/experiment.ts'
import type { Measured } from '../../experiment/shape.ts'
import { OTHER_ADDRESS, setNetwork, timeWaitOf } from './network.ts'

export interface PortsOptions {
  /** The number of ports for clients. */
  ports: number
  /** Views per second. */
  rate: number
  cases: string[]
}

/** A client, and the network settings of its case. */
export interface Client {
  readonly label: string
  readonly strategy: 'naive' | 'pipeline' | 'closes-itself'
  /** Multiplies the number of ports. Default: 1. */
  readonly portsFactor?: number
  /** `tcp_tw_reuse`: 0 never, 1 always, 2 on loopback (the kernel's default). */
  readonly reuse: 0 | 1 | 2
  /**
   * The number of connections that may be in TIME_WAIT, as a share of the ports. The kernel discards others at once.
   * Default: unlimited.
   */
  readonly mayWait?: number
  /** Whether the address of Redis is not a loopback address. */
  readonly otherAddress?: boolean
}

type PortsRun = Run<PortsOptions & { duration: number }>

export const EXHAUSTED = 'EADDRNOTAVAIL'

const FIRST_PORT = 20_000
const SERVER_PORTS = '61000 65000'
const LOOK_MS = 100
/** The limit of open connections, as a share of the ports, so that closed connections use up the ports. */
const MAX_OPEN_SHARE = 1 / 3
/** A value of tcp_max_tw_buckets that no case reaches. */
const UNLIMITED = 262_144
const DEADLINE_MS = 2_000

/** Runs a client with its own Redis, so that there are no connections of other cases to it. */
export async function runClient(client: Client, run: PortsRun): Promise<Measured> {
  const { reuse, otherAddress = false, mayWait } = client
  const ports = run.options.ports * (client.portsFactor ?? 1)
  // Redis cannot listen on ports that the previous case has used up.
  const any = { tcp_tw_reuse: 0, tcp_max_tw_buckets: UNLIMITED }
  await setNetwork({ ...any, ip_local_port_range: SERVER_PORTS })
  const server = await run.context.startRedis({
    build: 'patched',
    config: otherAddress ? { bind: OTHER_ADDRESS, 'protected-mode': 'no' } : {},
  })
  // tcp_max_tw_buckets also counts the connections of earlier cases.
  const { all } = await timeWaitOf(server.port)
  await setNetwork({
    ip_local_port_range: `${FIRST_PORT} ${FIRST_PORT + ports - 1}`,
    tcp_tw_reuse: reuse,
    tcp_max_tw_buckets: mayWait ? Math.round(mayWait * ports) + all : UNLIMITED,
  })
  const host = otherAddress ? OTHER_ADDRESS : '127.0.0.1'
  const redis = `redis://${host}:${server.port}`
  const store = new SessionStore({
    ...sendingOf(client.strategy, { redis, poolSize: 1, deadlineMs: DEADLINE_MS }),
    tokens: { secrets: [newSecret()] },
    deadlineMs: DEADLINE_MS,
    janitor: 'elsewhere',
  })
  try {
    await store.ready()
    const { values, errors } = await recordViews(store, server, ports, run)
    return { values: { ...values, ports, reuse }, errors }
  } finally {
    await store.close()
    await server.stop()
  }
}

async function recordViews(
  store: SessionStore,
  server: RedisServer,
  ports: number,
  { options: { rate, duration }, context: { signal } }: PortsRun,
) {
  const { token } = await store.login('ada')
  const errors: Record<string, number> = {}
  let [views, mostWaiting] = [0, 0]
  let first: { seconds: number; views: number } | undefined
  const startedAt = performance.now()
  const elapsed = () => (performance.now() - startedAt) / 1_000
  const record = async () => {
    try {
      await store.recordView(token, 'item')
      views++
    } catch (error) {
      const kind = kindOf(error)
      errors[kind] = (errors[kind] ?? 0) + 1
      if (kind === EXHAUSTED) first ??= { seconds: elapsed(), views }
    }
  }
  const look = async () => {
    const waiting = await timeWaitOf(server.port)
    mostWaiting = Math.max(mostWaiting, waiting.clients)
    return waiting
  }
  const looking = setInterval(() => void look(), LOOK_MS)
  const atOnce = Math.floor(MAX_OPEN_SHARE * ports)
  const pace = { perSecond: rate, seconds: duration, signal, atOnce }
  const { cpu } = await cpuDuring(server, () => callAtRate(record, pace)).finally(() =>
    clearInterval(looking),
  )
  const { server: waitingAtServer } = await look()
  const attempts = Object.values(errors).reduce((sum, count) => sum + count, views)
  const until = first ?? { seconds: cpu.seconds, views }
  return {
    values: {
      refused: (errors[EXHAUSTED] ?? 0) / Math.max(1, attempts),
      lasted: first?.seconds ?? null,
      rateBefore: until.views / until.seconds,
      rateAfter: first ? (views - first.views) / (cpu.seconds - first.seconds) : null,
      mostWaiting,
      waitingAtServer,
      views,
      redisCpuMicros: (cpu.cpuSeconds * 1e6) / Math.max(1, views),
    },
    errors,
  }
}

/** The system's error code among the causes of an error, such as `EADDRNOTAVAIL`; else the message. */
function kindOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at.name !== 'StoreError' && 'code' in at) return String(at.code)
  }
  return error instanceof Error ? error.message : String(error)
}

/**
 * Starts calls at a constant rate, independent of their duration, and waits for all of them.
 *
 * @param call must not reject.
 * @param pace.atOnce the maximum number of calls in flight. Further calls are skipped.
 */
export async function callAtRate(
  call: () => Promise<void>,
  pace: { perSecond: number; seconds: number; atOnce: number; signal: AbortSignal },
): Promise<void> {
  const { perSecond, seconds, atOnce, signal } = pace
  const startedAt = performance.now()
  const open = new Set<Promise<void>>()
  let due = 0
  for (let elapsed = 0; elapsed < seconds; ) {
    await delay(10, undefined, { signal })
    elapsed = Math.min(seconds, (performance.now() - startedAt) / 1_000)
    for (; due < Math.floor(elapsed * perSecond); due++) {
      if (open.size >= atOnce) continue
      const work = call().finally(() => open.delete(work))
      open.add(work)
    }
  }
  await Promise.all(open)
}
