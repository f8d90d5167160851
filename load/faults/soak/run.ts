import { setTimeout as delay } from 'node:timers/promises'
import { summaryOf } from '@onetrip/stack/measure/latencies.ts'
import { audit } from '@onetrip/stack/testing/audit/audit.ts'
import type { Reading } from './readings.ts'
import type { Fault } from './redis.ts'
import type { SoakStack } from './stack.ts'
import { judge } from './steady.ts'
import { startTraffic, type Traffic } from './traffic.ts'

export interface SoakOptions {
  minutes: number
  /** Requests per second. */
  rate: number
  sessions: number
  seed: number
}

/** The record of an injected fault. */
interface Injected {
  readonly second: number
  readonly fault: string
  /** The longest time without an acknowledged view, from the start of the fault to the recovery. */
  readonly gapMs: number
  /** Views during the fault with an unknown outcome. */
  readonly unknown: number
  /** Views during the fault that were not written. */
  readonly notWritten: number
  /** Whether a view was acknowledged within 30 s after the fault; a view of any API and node. */
  readonly recovered: boolean
}

/** The schedule of a soak, in seconds since its start. */
export interface Plan {
  readonly seconds: number
  /** Earlier readings are ignored. */
  readonly warmUpSeconds: number
  /** The start times of the faults. */
  readonly faultsAt: readonly number[]
}

const FAULT_EVERY_SECONDS = 60
const RECOVERED_WITHIN_MS = 30_000
const READINGS = 240
/** An API collects its garbage before each reading, which costs CPU time. The trends need 24 readings. */
const MIN_READ_EVERY_MS = 600

/**
 * Schedules a fault per minute between the warm-up and a calm period at the end; more often if the run is too short
 * for one fault of each kind.
 */
export function planOf({ minutes }: Pick<SoakOptions, 'minutes'>, kinds: number): Plan {
  const seconds = 60 * minutes
  const warmUpSeconds = Math.min(0.2 * seconds, 180)
  const calmSeconds = Math.min(0.1 * seconds, 60)
  const between = seconds - warmUpSeconds - calmSeconds
  const count = Math.max(kinds, Math.floor(between / FAULT_EVERY_SECONDS))
  return {
    seconds,
    warmUpSeconds,
    faultsAt: Array.from(
      { length: count },
      (_, index) => warmUpSeconds + (index * between) / count,
    ),
  }
}

/** The interval of readings, in milliseconds. */
export const readEveryMs = ({ minutes }: Pick<SoakOptions, 'minutes'>): number =>
  Math.max(MIN_READ_EVERY_MS, (minutes * 60_000) / READINGS)

export type Soaked = Awaited<ReturnType<typeof soak>>

/**
 * Runs traffic, injects faults, and audits Redis at the end.
 *
 * @param interrupt ends the traffic early. The audit still runs.
 * @param note shows the progress.
 * @throws ProgramError when a program has ended unexpectedly.
 */
export async function soak(
  stack: SoakStack,
  options: SoakOptions,
  { interrupt, note }: { interrupt?: AbortSignal; note: (text: string) => void },
) {
  const { redis, faults } = stack
  const signal = AbortSignal.any(interrupt ? [stack.signal, interrupt] : [stack.signal])
  const plan = planOf(options, faults.length)
  const traffic = startTraffic({ ...options, urls: stack.urls })
  const injected: Injected[] = []
  const readings: Reading[] = []
  const over = new AbortController()
  // Not awaited, because reading blocks while Redis is down.
  void readWhile(stack, readEveryMs(options), over.signal, (values) => {
    readings.push({ second: traffic.seconds(), values })
  })
  try {
    await injectAll({ faults, traffic, plan, signal, note, onFault: (one) => injected.push(one) })
    note(`${clockText(traffic.seconds())}: auditing`)
  } finally {
    over.abort()
    await traffic.stop()
  }
  stack.signal.throwIfAborted()
  const seconds = traffic.seconds()
  const wrongData = await traffic.checkData()
  const { lost, extra, discrepancies } = await audit(redis.client, traffic.ledger, redis.keys)
  return {
    seconds,
    counts: traffic.counts,
    errors: traffic.errors,
    latencies: summaryOf(traffic.latencies),
    lost,
    extra,
    discrepancies: [...discrepancies, ...wrongData, ...traffic.unexpected],
    injected,
    verdicts: judge(readings, plan.warmUpSeconds),
  }
}

const clockText = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`

interface Injection {
  readonly faults: readonly Fault[]
  readonly traffic: Traffic
  readonly plan: Plan
  readonly signal: AbortSignal
  readonly note: (text: string) => void
  readonly onFault: (injected: Injected) => void
}

/** Injects all faults of the plan. Resolves at the end of the run, or after an abort. */
async function injectAll(parts: Injection): Promise<void> {
  const { faults, traffic, plan, signal, note, onFault } = parts
  /** Resolves with false after an abort. */
  const waitUntil = (second: number) =>
    delay(Math.max(0, second - traffic.seconds()) * 1_000, true, { signal }).catch(() => false)
  for (const [index, at] of plan.faultsAt.entries()) {
    if (!(await waitUntil(at))) return
    const fault = faults[index % faults.length] as Fault
    note(`${clockText(traffic.seconds())}: ${fault.name} (${index + 1}/${plan.faultsAt.length})`)
    const { unknown, notWritten } = traffic.counts
    const second = traffic.seconds()
    traffic.takeLongestGap()
    await fault.run()
    const recovered = await traffic.nextView(RECOVERED_WITHIN_MS, signal)
    onFault({
      second,
      fault: fault.name,
      gapMs: traffic.takeLongestGap(),
      unknown: traffic.counts.unknown - unknown,
      notWritten: traffic.counts.notWritten - notWritten,
      recovered: recovered || signal.aborted,
    })
  }
  await waitUntil(plan.seconds)
}

/** Reads the resources of the first API and of Redis periodically, until `signal` is aborted. */
async function readWhile(
  { redis, reading }: SoakStack,
  everyMs: number,
  signal: AbortSignal,
  onReading: (values: Reading['values']) => void,
): Promise<void> {
  for (;;) {
    const held = await redis.read().catch(() => ({}))
    if (signal.aborted) return
    const api = reading()
    onReading({
      ...(api && { 'API heap': api.heap, 'API RSS': api.rss, 'API descriptors': api.descriptors }),
      ...held,
    })
    if (!(await delay(everyMs, true, { signal }).catch(() => false))) return
  }
}
