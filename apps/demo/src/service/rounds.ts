import { saturateByAutocannon } from '@onetrip/stack/measure/autocannon.ts'
import { GENERATOR_LIMIT } from '@onetrip/stack/measure/generator-limit.ts'
import { summaryOf as latencySummary, together } from '@onetrip/stack/measure/latencies.ts'
import {
  readFamilyCpu,
  readMachineCpu,
  shareElsewhere,
} from '@onetrip/stack/measure/machine-cpu.ts'
import { type Usage, usageDuring } from '@onetrip/stack/measure/usage.ts'
import { workload } from '@onetrip/stack/measure/workload.ts'
import type { Monitor } from '@onetrip/stack/redis-monitors.ts'
import { unlessAborted } from '@onetrip/stack/until.ts'
import type { RaceEvent, Started, Turn } from '../events.ts'
import type { Lane } from './lanes.ts'
import { raceItems } from './sessions.ts'
import { type Summary, summaryOf } from './summary.ts'

type GeneratorResult = Awaited<ReturnType<typeof saturateByAutocannon>>

/** Fewer than `load` prepares, because the page shows nothing during the preparation. */
const PREPARED = 5_000

/** The context of a race that is ready to begin. */
export interface Course {
  started: Started
  lanes: readonly Lane[]
  /** Tokens of sessions that the lanes accept. */
  tokens: readonly string[]
  monitor: Monitor
  publish(event: RaceEvent): void
  /** Ends the race early: all functions here reject with its reason. */
  signal: AbortSignal
}

/** One turn of a lane, with data for the summary. */
interface Measured {
  turn: Turn
  result: GeneratorResult
  /** Share of the machine's CPU time that other programs took; null if unknown. */
  elsewhere: number | null
}

/** Runs load on a lane at full speed. */
async function load(course: Course, lane: Lane, round: number, seconds: number) {
  const { tokens, publish, signal, started } = course
  const { connections } = started
  const run = saturateByAutocannon({
    url: lane.url,
    seconds,
    owned: false,
    calls: workload({ ...raceItems, tokens, connections, seed: round + 1, prepared: PREPARED }),
    signal,
    finish: true,
    onSample: (sample) => publish({ name: 'sample', data: { lane: lane.index, round, ...sample } }),
  })
  return await unlessAborted(signal, run)
}

/** Runs load that is not part of the result. Its samples are the first figures that the page shows. */
export async function warmUp(course: Course, seconds: number): Promise<void> {
  course.publish({ name: 'preparing', data: { text: 'Warming up' } })
  for (const lane of course.lanes) await load(course, lane, 0, seconds)
}

/** Runs all rounds: the lanes take turns, in alternating order. Publishes samples and turns. */
export async function runRounds(course: Course): Promise<Summary> {
  const { started, lanes, publish } = course
  const measured: Measured[] = []
  for (let round = 1; round <= started.rounds; round++) {
    for (const lane of round % 2 === 1 ? lanes : lanes.toReversed()) {
      const one = await takeTurn(course, lane, round)
      measured.push(one)
      publish({ name: 'turn', data: one.turn })
    }
  }
  return resultOf(started, measured)
}

async function takeTurn(course: Course, lane: Lane, round: number): Promise<Measured> {
  const { monitor, signal, started } = course
  const { url } = lane
  const [machine, own] = [await readMachineCpu(), await readFamilyCpu(process.pid)]
  const { result, usage } = await unlessAborted(
    signal,
    usageDuring({ url, monitor, signal }, () => load(course, lane, round, started.turnSeconds)),
  )
  const ownSeconds = ((await readFamilyCpu(process.pid)) ?? 0) - (own ?? 0) + usage.redisCpuSeconds
  const elsewhere = shareElsewhere(machine, await readMachineCpu(), ownSeconds)
  return { turn: turnOf(lane.index, round, result, usage), result, elsewhere }
}

function turnOf(
  lane: number,
  round: number,
  { seconds, ok, errors, latency }: GeneratorResult,
  usage: Usage,
): Turn {
  return {
    lane,
    round,
    seconds,
    requests: ok,
    requestsPerSecond: ok / seconds,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    errors: Object.values(errors).reduce((sum, count) => sum + count, 0),
    connectionsOpened: usage.connectionsOpened,
    roundTrips: usage.roundTrips,
    commands: usage.commands,
    redisCpuUs: usage.redisCpuSeconds * 1e6,
    apiCpuUs: usage.apiCpuSeconds * 1e6,
  }
}

function resultOf(started: Started, measured: readonly Measured[]): Summary {
  const laneOf = (_strategy: string, lane: number) => {
    const results = measured.filter(({ turn }) => turn.lane === lane).map(({ result }) => result)
    const { p50, p99 } = latencySummary(together(results.map(({ histogram }) => histogram)))
    const busiest = Math.max(...results.map(({ generator }) => generator.utilization))
    return { p50Ms: p50, p99Ms: p99, generatorBusy: busiest >= GENERATOR_LIMIT }
  }
  const shares = measured.flatMap(({ elsewhere }) => elsewhere ?? [])
  return summaryOf(started, {
    turns: measured.map(({ turn }) => turn),
    lanes: started.lanes.map(laneOf),
    elsewhere: shares.length > 0 ? shares.reduce((sum, one) => sum + one) / shares.length : null,
  })
}
