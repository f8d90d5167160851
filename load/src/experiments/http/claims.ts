import { hasRequest } from '../../drivers/http/request.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Headline } from '../../experiment/section.ts'

const RATE = 'requestsPerSecond'

/** The row of our best variant, and its baseline. */
function compared(rows: Rows): { ours: Row; base: Row } | undefined {
  const base = rows.all[0]?.baseline(rows)
  const [ours] = ['batch', 'pipeline'].flatMap((variant) => rows.find({ variant }) ?? [])
  return base && ours && base !== ours ? { ours, base } : undefined
}

const isSharedTrip = ({ subject }: Row) => subject === 'batch'

/** The ratio of rates or, if rows are marked, of CPU times, because other programs affect those less. */
export function headlineOf(rows: Rows, { options }: Result): Headline | undefined {
  const pair = hasRequest(options) ? undefined : compared(rows)
  if (!pair) return undefined
  const { ours, base } = pair
  const isMarked = [base, ours].some(({ doubts }) => doubts.length > 0)
  const rate = ours.ratio(RATE, base)
  const cpu = ours.ratio('apiCpuMicros', base)
  const shown = isMarked ? cpu : rate
  if (!shown) return undefined
  const against = (metric: string, name: string, unit = '') => ({
    value: `${figure(ours.median(metric) ?? Number.NaN)}${unit}`,
    label: `${name} per request; ${base.subject}: ${figure(base.median(metric) ?? Number.NaN)}${unit}`,
  })
  return {
    text: `${isSharedTrip(ours) ? 'One shared trip' : 'One trip'}: ${figure(shown.mean)}× ${isMarked ? 'the CPU time per request' : 'the requests'}`,
    detail: [
      `${ours.subject} against ${base.subject}, ${counted(Number(options.connections), 'connection')}`,
      ...(shown.interval
        ? [`95 % interval ${figure(shown.interval.low)} to ${figure(shown.interval.high)}`]
        : []),
      ...(isMarked ? ['rows are marked, so this is CPU time of the API instead of the rate'] : []),
    ].join('; '),
    tiles: [
      { value: `${figure(shown.mean)}×`, label: isMarked ? 'API CPU time' : 'requests/s' },
      against('roundTrips', 'round trips to Redis'),
      against('apiCpuMicros', 'API CPU time', ' µs'),
    ],
  }
}

/** The ratio of our best variant to its baseline, and the Redis work of both. */
export function claimsOf(rows: Rows, { options }: Result): string[] {
  if (hasRequest(options)) return rows.all.map(claimWithoutBaseline)
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
  const { workload = 'realistic' } = options
  const isViews = workload === 'realistic' || workload === 'articles'
  const what = !isViews || Number(options.reads) > 0 ? 'requests' : 'page views'
  return [
    `${ours.subject} answers ${figure(mean)} times as many ${what} a second as ${base.subject} (${sure}).${marks.size > 0 ? ` Their rows are marked ${[...marks].join(' ')}: see the notes.` : ''}`,
    `Connections to Redis, round trips and commands per request: ${base.subject} ${redisWorkOf(base)}; ${ours.subject} ${redisWorkOf(ours)}.`,
  ]
}

function claimWithoutBaseline(row: Row): string {
  if (row.hasDoubtfulRate) return `The rate of ${row.subject} is not reliable: its row is marked.`
  const [rate, p99] = [row.value(RATE), row.value('p99')].map((value) =>
    figure(value ?? Number.NaN),
  )
  return `${row.subject} answers ${rate} requests a second; 99 % of the answers take at most ${p99} ms.`
}

/** Connections, round trips and commands: `1, 5 and 9`. */
function redisWorkOf(row: Row): string {
  const [connections, roundTrips, commands] = ['connections', 'roundTrips', 'commands'].map(
    (metric) => Number((row.median(metric) ?? 0).toFixed(2)),
  )
  return `${connections}, ${roundTrips} and ${commands}`
}
