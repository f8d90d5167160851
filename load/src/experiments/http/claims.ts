import { figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'

const RATE = 'requestsPerSecond'

/** The row of our best variant, and its baseline. */
function compared(rows: Rows): { ours: Row; base: Row } | undefined {
  const base = rows.all[0]?.baseline(rows)
  const [ours] = ['batch', 'pipeline'].flatMap((variant) => rows.find({ variant }) ?? [])
  return base && ours && base !== ours ? { ours, base } : undefined
}

/** The ratio of our best variant to its baseline, and the Redis work of both. */
export function claimsOf(rows: Rows): string[] {
  const pair = compared(rows)
  if (!pair) return []
  const { ours, base } = pair
  const ratio = ours.ratio(RATE, base)
  if (!ratio) {
    return [
      `There is no reliable ratio of ${ours.subject} to ${base.subject}: their rows are marked.`,
    ]
  }
  const { mean, min, max, interval } = ratio
  const marks = new Set([...base.doubts, ...ours.doubts].map(({ mark }) => mark))
  const sure = interval
    ? `95 % interval: ${figure(interval.low)} to ${figure(interval.high)}; range of the rounds: ${figure(min)} to ${figure(max)}`
    : 'one round'
  return [
    `${ours.subject} answers ${figure(mean)} times as many requests a second as ${base.subject} (${sure}).${marks.size > 0 ? ` Their rows are marked ${[...marks].join(' ')}: see the notes.` : ''}`,
    `Connections to Redis, round trips and commands per request: ${base.subject} ${redisWorkOf(base)}; ${ours.subject} ${redisWorkOf(ours)}.`,
  ]
}

/** Connections, round trips and commands: `1, 5 and 9`. */
function redisWorkOf(row: Row): string {
  const [connections, roundTrips, commands] = ['connections', 'roundTrips', 'commands'].map(
    (metric) => Number((row.median(metric) ?? 0).toFixed(2)),
  )
  return `${connections}, ${roundTrips} and ${commands}`
}
