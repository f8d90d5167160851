import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import { median } from 'simple-statistics'
import type { Done, LaneResult, Pair, Range, Started, Totals, Turn } from '../events.ts'

/** The fields that are summed over the turns of a lane. */
export const totals = [
  'requests',
  'errors',
  'connectionsOpened',
  'roundTrips',
  'commands',
  'redisCpuUs',
  'apiCpuUs',
] as const satisfies readonly (keyof Totals)[]

interface Measured {
  turns: readonly Turn[]
  /** Per lane, over all turns: latencies, and whether the load generator was saturated. */
  lanes: Pair<Pick<LaneResult, 'p50Ms' | 'p99Ms'> & { generatorBusy: boolean }>
  /** Share of the machine's CPU time that other programs took; null if unknown. */
  elsewhere: number | null
}

/** The result of a race: sums and medians of its turns, and a sentence. */
export function summaryOf({ id, lanes }: Started, measured: Measured): Done {
  const { turns, elsewhere } = measured
  const of = (lane: 0 | 1) => turns.filter((turn) => turn.lane === lane)
  const result = (lane: 0 | 1): LaneResult => ({
    strategy: lanes[lane],
    requestsPerSecond: rangeOf(of(lane).map((turn) => turn.requestsPerSecond)),
    p50Ms: measured.lanes[lane].p50Ms,
    p99Ms: measured.lanes[lane].p99Ms,
    ...(Object.fromEntries(
      totals.map((name) => [name, of(lane).reduce((sum, turn) => sum + turn[name], 0)]),
    ) as unknown as Totals),
  })
  const results: Pair<LaneResult> = [result(0), result(1)]
  const [first, second] = results.map((one) => one.requestsPerSecond.median)
  const faster = (second ?? 0) > (first ?? 0) ? 1 : 0
  const slower = faster === 0 ? 1 : 0
  const ratios = of(faster).map((turn) => {
    const other = of(slower).find(({ round }) => round === turn.round)
    return turn.requestsPerSecond / (other?.requestsPerSecond ?? 0)
  })
  const ratio = ratios.length > 0 && ratios.every(Number.isFinite) ? rangeOf(ratios) : null
  const disturbed =
    elsewhere !== null && elsewhere >= DISTURBED
      ? `Other programs took ${Math.round(elsewhere * 100)} % of the machine's CPU time during the race: the figures would differ on an idle machine.`
      : null
  const sentences = [
    comparison(results, faster, ratio, ratios.length),
    ...failures(results),
    ...(measured.lanes[faster].generatorBusy
      ? [`The load generator was saturated: ${named(results, faster)} may be faster than this.`]
      : []),
  ]
  return { id, lanes: results, faster, ratio, sentence: sentences.join(' '), disturbed }
}

/** From this median on, a single slow round is reported as a disagreement, not as "about as fast". */
const CLEARLY_FASTER = 1.2

function comparison(
  lanes: Pair<LaneResult>,
  faster: 0 | 1,
  ratio: Range | null,
  rounds: number,
): string {
  const [winner, other] = [named(lanes, faster), named(lanes, faster === 0 ? 1 : 0)]
  if (!ratio) return `There is no ratio: a lane answered no request in at least one round.`
  const { median, lowest, highest } = ratio
  const range = `${figure(lowest)} to ${figure(highest)} in ${words[rounds] ?? rounds} rounds`
  if (lowest <= 1 && median >= CLEARLY_FASTER) {
    return `The rounds disagree. In the median round, ${winner} answered ${figure(median)} times as many page views per second as ${other} (${range}).`
  }
  if (lowest <= 1) return `${winner} and ${other} were about as fast (${range}).`
  return `${winner} answered ${figure(median)} times as many page views per second as ${other} (${range}).`
}

function failures(lanes: Pair<LaneResult>): string[] {
  return ([0, 1] as const).flatMap((lane) => {
    const { errors, requests } = lanes[lane]
    if (errors === 0) return []
    const all = (requests + errors).toLocaleString('en')
    return [
      `${errors.toLocaleString('en')} of ${all} page views failed with ${named(lanes, lane)}.`,
    ]
  })
}

/** The strategy, with the number of the lane if both lanes have the same strategy. */
function named(lanes: Pair<LaneResult>, lane: 0 | 1): string {
  const { strategy } = lanes[lane]
  return lanes[0].strategy === lanes[1].strategy ? `${strategy} (lane ${lane + 1})` : strategy
}

const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven']

/** Formats a ratio with three significant digits. */
const figure = (value: number) =>
  value.toLocaleString('en', { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })

function rangeOf(values: readonly number[]): Range {
  if (values.length === 0) return { median: 0, lowest: 0, highest: 0 }
  return { median: median([...values]), lowest: Math.min(...values), highest: Math.max(...values) }
}
