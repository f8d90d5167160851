import { setTimeout as delay } from 'node:timers/promises'
import { Census } from './census.ts'
import { costsOf, figuresOf } from './figures.ts'
import type { Observation } from './finding.ts'
import type { Probe } from './probe.ts'
import { OWN_NAME, parseClientList, parseSlowLog, type SlowCommand } from './replies.ts'
import { counted } from './text.ts'

export interface WatchOptions {
  seconds: number
  /** With more connections, CLIENT LIST is not sent. */
  maxListed: number
  stallMs: number
  signal: AbortSignal
}

/** CLIENT LIST takes about a microsecond of CPU time per connection (docs/measurements/redis-experiments.md). */
const MICROS_PER_CLIENT = 1
/** CLIENT LIST may take this share of the main thread's time. */
const LIST_SHARE = 0.01
const MIN_PAUSE_MS = 100

const SLOW_LOG_SECONDS = 3_600
const SLOW_LOG_ENTRIES = '128'

/**
 * Watches a server for `seconds`, then reads its slow log.
 *
 * @throws Problem when INFO is not permitted, or the server restarts during the watch; the reason of `signal`.
 */
export async function watch(probe: Probe, options: WatchOptions): Promise<Observation> {
  const { seconds, stallMs, signal } = options
  const startedAt = performance.now()
  const before = await probe.info()
  const census = await takeCensus(probe, before, startedAt + seconds * 1_000, options)
  await delay(Math.max(0, startedAt + seconds * 1_000 - performance.now()), undefined, { signal })
  const elapsed = (performance.now() - startedAt) / 1_000
  const info = await probe.info()
  const lists = census?.samples ?? 0
  // Redis counts a command after its reply: the first INFO is in the difference, the last one is not.
  const listName = info.has('cmdstat_client') ? 'client' : 'client|list'
  const own = new Map([
    ['info', 1],
    [listName, lists],
  ])
  const figures = figuresOf(before, info, { seconds: elapsed, own, census })
  const slowLog = await readSlowLog(probe, Number(info.get('server_time_usec') ?? 0) / 1e6)
  return {
    figures,
    info,
    stallMs,
    slowLog,
    costs: costsOf(figures),
    clients: census?.groups() ?? null,
  }
}

async function takeCensus(
  probe: Probe,
  info: ReadonlyMap<string, string>,
  until: number,
  { maxListed, signal }: WatchOptions,
): Promise<Census | null> {
  const connected = Number(info.get('connected_clients') ?? 0)
  if (connected > maxListed) {
    const cost = Math.ceil((connected * MICROS_PER_CLIENT) / 1_000)
    probe.skip(
      'CLIENT LIST',
      `not sent: with ${counted(connected, 'connection')} it would block the server for about ${cost} ms. To allow it: --max-clients ${connected}`,
    )
    return null
  }
  const census = new Census()
  do {
    const reply = await probe.ask('CLIENT', 'LIST')
    if (reply === null) return null
    const rows = parseClientList(String(reply))
    census.add(rows)
    const pause = pauseAfter(rows.length)
    if (performance.now() + pause >= until) return census
    await delay(pause, undefined, { signal })
  } while (performance.now() < until)
  return census
}

/** Milliseconds between two CLIENT LIST commands, by the number of connections. */
export const pauseAfter = (connections: number): number =>
  Math.max(MIN_PAUSE_MS, (connections * MICROS_PER_CLIENT) / 1_000 / LIST_SHARE)

async function readSlowLog(probe: Probe, now: number): Promise<SlowCommand[] | null> {
  const reply = await probe.ask('SLOWLOG', 'GET', SLOW_LOG_ENTRIES)
  if (reply === null) return null
  return parseSlowLog(reply).filter(
    ({ at, client }) => client !== OWN_NAME && at >= now - SLOW_LOG_SECONDS,
  )
}
