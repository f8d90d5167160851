import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import { median } from 'simple-statistics'
import type { Done, LaneResult, Range, Started, Totals, Turn } from '../events.ts'

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
  lanes: readonly (Pick<LaneResult, 'p50Ms' | 'p99Ms'> & { generatorBusy: boolean })[]
  /** Share of the machine's CPU time that other programs took; null if unknown. */
  elsewhere: number | null
}

export type Summary = Omit<Done, 'command' | 'date' | 'machine'>

/** The result of a race: sums and medians of its turns, and sentences that compare the lanes. */
export function summaryOf(started: Started, measured: Measured): Summary {
  const { id, lanes, connections, distanceMs } = started
  const { turns, elsewhere } = measured
  const of = (lane: number) => turns.filter((turn) => turn.lane === lane)
  const results = measured.lanes.map(
    ({ p50Ms, p99Ms }, lane): LaneResult => ({
      strategy: lanes[lane] ?? '',
      requestsPerSecond: rangeOf(of(lane).map((turn) => turn.requestsPerSecond)),
      p50Ms,
      p99Ms,
      ...(Object.fromEntries(
        totals.map((name) => [name, of(lane).reduce((sum, turn) => sum + turn[name], 0)]),
      ) as unknown as Totals),
    }),
  )
  const racers = results.map((result, lane) => ({
    ...result,
    name: nameOf(lanes, lane),
    turns: of(lane),
  }))
  const disturbed =
    elsewhere !== null && elsewhere >= DISTURBED
      ? `Other programs took ${Math.round(elsewhere * 100)} % of the machine's CPU time during the race: the figures would differ on an idle machine.`
      : null
  const steps = racers.slice(1).map((racer, index) => comparison(racers[index] as Racer, racer))
  const [first, last] = [racers[0], racers.at(-1)] as [Racer, Racer]
  const sentences = [
    comparison(first, last),
    ...racers.flatMap(failures),
    ...racers.flatMap(({ name }, lane) =>
      measured.lanes[lane]?.generatorBusy
        ? [`The load generator was saturated: ${name} may be faster than this.`]
        : [],
    ),
  ]
  return {
    id,
    connections,
    distanceMs,
    lanes: results,
    ratio: ratioOf(first, last),
    sentence: sentences.join(' '),
    steps: lanes.length > 2 ? steps : [],
    disturbed,
  }
}

/** A lane, with its name in sentences. */
interface Racer extends LaneResult {
  name: string
  turns: readonly Turn[]
}

/** From this median on, a single slow round is reported as a disagreement, not as "about as fast". */
const CLEARLY_FASTER = 1.2

function comparison(first: Racer, second: Racer): string {
  const isFaster = second.requestsPerSecond.median > first.requestsPerSecond.median
  const [winner, other] = isFaster ? [second, first] : [first, second]
  const ratio = ratioOf(other, winner)
  if (ratio === null) {
    return `There is no ratio: a lane answered no page view in at least one round.`
  }
  const { median, lowest, highest } = ratio
  const rounds = winner.turns.length
  const range = `${figure(lowest)} to ${figure(highest)} in ${words[rounds] ?? rounds} rounds`
  if (lowest <= 1 && median < CLEARLY_FASTER) {
    return `${winner.name} and ${other.name} were about as fast (${range}).`
  }
  const disagreement = lowest <= 1 ? 'The rounds disagree. In the median round, ' : ''
  return `${disagreement}${winner.name} answered ${figure(median)} times as many page views per second as ${other.name} (${range}).`
}

/** Page views per second of the second lane as a multiple of the first, by round. */
function ratioOf(first: Racer, second: Racer): Range | null {
  const ratios = second.turns.map(({ round, requestsPerSecond }) => {
    const same = first.turns.find((turn) => turn.round === round)
    return requestsPerSecond / (same?.requestsPerSecond ?? 0)
  })
  const isKnown =
    ratios.length > 0 && ratios.every((ratio) => ratio > 0 && ratio < Number.POSITIVE_INFINITY)
  return isKnown ? rangeOf(ratios) : null
}

function failures({ name, errors, requests }: Racer): string[] {
  if (errors === 0) return []
  const all = (requests + errors).toLocaleString('en')
  return [`${errors.toLocaleString('en')} of ${all} page views failed with ${name}.`]
}

/** The strategy, with the number of the lane if another lane has the same strategy. */
function nameOf(lanes: readonly string[], lane: number): string {
  const strategy = lanes[lane] ?? ''
  return lanes.indexOf(strategy) === lanes.lastIndexOf(strategy)
    ? strategy
    : `${strategy} (lane ${lane + 1})`
}

const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven']

/** Formats a ratio with three significant digits. */
const figure = (value: number) =>
  value.toLocaleString('en', { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })

function rangeOf(values: readonly number[]): Range {
  if (values.length === 0) return { median: 0, lowest: 0, highest: 0 }
  return { median: median([...values]), lowest: Math.min(...values), highest: Math.max(...values) }
}
