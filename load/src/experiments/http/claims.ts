import { hasRequest } from '../../drivers/http/request.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Headline } from '../../experiment/section.ts'

const RATE = 'requestsPerSecond'

/** Ours, and what it is compared with. */
function contestOf(rows: Rows): { hero: Row; base: Row } | undefined {
  const base = rows.all[0]?.baseline(rows)
  const [hero] = ['batch', 'pipeline'].flatMap((variant) => rows.find({ variant }) ?? [])
  return base && hero && base !== hero ? { hero, base } : undefined
}

const isSharedTrip = ({ subject }: Row) => subject === 'batch'

/** The rate as a multiple or, where rows are marked, CPU time, which other programs change less. */
export function headlineOf(rows: Rows, { options }: Result): Headline | undefined {
  const contest = hasRequest(options) ? undefined : contestOf(rows)
  if (!contest) return undefined
  const { hero, base } = contest
  const isMarked = [base, hero].some(({ doubts }) => doubts.length > 0)
  const rate = hero.ratio(RATE, base)
  const cpu = base.ratio('apiCpuMicros', hero)
  const shown = isMarked ? cpu : rate
  if (!shown) return undefined
  const against = (metric: string, name: string, unit = '') => ({
    value: `${figure(hero.median(metric) ?? Number.NaN)}${unit}`,
    label: `${name} per request; ${base.subject}: ${figure(base.median(metric) ?? Number.NaN)}${unit}`,
  })
  return {
    text: `${isSharedTrip(hero) ? 'One shared trip' : 'One trip'}: ${figure(shown.mean)}× ${isMarked ? 'less CPU time per request' : 'the requests'}`,
    detail: [
      `${hero.subject} against ${base.subject}, ${counted(Number(options.connections), 'connection')}`,
      ...(shown.interval
        ? [`95 % interval ${figure(shown.interval.low)} to ${figure(shown.interval.high)}`]
        : []),
      ...(isMarked ? ['rows are marked, so this is CPU time of the API instead of the rate'] : []),
    ].join('; '),
    tiles: [
      { value: `${figure(shown.mean)}×`, label: isMarked ? 'less API CPU time' : 'requests/s' },
      against('roundTrips', 'round trips to Redis'),
      against('apiCpuMicros', 'API CPU time', ' µs'),
    ],
  }
}

/** Ours beside what it is compared with: what it is worth, and what makes the difference. */
export function claimsOf(rows: Rows, { options }: Result): string[] {
  if (hasRequest(options)) return rows.all.map(pace)
  const contest = contestOf(rows)
  if (!contest) return []
  const { hero, base } = contest
  const ratio = hero.ratio(RATE, base)
  if (!ratio) {
    return [
      `No ratio is claimed between ${hero.subject} and ${base.subject}: their rows are marked.`,
    ]
  }
  const { mean, min, max, interval } = ratio
  const marks = new Set([...base.doubts, ...hero.doubts].map(({ mark }) => mark))
  const sure = interval
    ? `95 % sure: ${figure(interval.low)} to ${figure(interval.high)}; round by round: ${figure(min)} to ${figure(max)}`
    : 'one round'
  const { workload = 'realistic' } = options
  const isViews = workload === 'realistic' || workload === 'documents'
  const what = !isViews || Number(options.reads) > 0 ? 'requests' : 'page views'
  return [
    `${hero.subject} answers ${figure(mean)} times as many ${what} a second as ${base.subject} (${sure}).${marks.size > 0 ? ` Their rows are marked ${[...marks].join(' ')}: see the notes.` : ''}`,
    `Connections to Redis, round trips and commands per request: ${base.subject} ${effortOf(base)}; ${hero.subject} ${effortOf(hero)}.`,
  ]
}

/** What a service did that is compared with nothing. */
function pace(row: Row): string {
  if (row.hasDoubtfulRate) return `Nothing is claimed of ${row.subject}: its row is marked.`
  const [rate, p99] = [row.value(RATE), row.value('p99')].map((value) =>
    figure(value ?? Number.NaN),
  )
  return `${row.subject} answers ${rate} requests a second; 99 % of the answers take at most ${p99} ms.`
}

/** `1, 5 and 9` */
function effortOf(row: Row): string {
  const [connections, roundTrips, commands] = ['connections', 'roundTrips', 'commands'].map(
    (metric) => Number((row.median(metric) ?? 0).toFixed(2)),
  )
  return `${connections}, ${roundTrips} and ${commands}`
}
