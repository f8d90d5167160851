import { type Ending, endingText } from '../../experiment/rounds.ts'
import { referencesOf, type VariantSummary } from '../../http/summary.ts'
import type { Dimension, ScalingPoint, ScalingResult, ScalingSeries } from '../../scaling/result.ts'
import { counted, figure, withRange } from '../../table.ts'
import type { LineChart, Part, ReportTable, Section } from '../model.ts'
import { isDoubtful, nameOf, notesOf } from './http-tables.ts'
import { clientsText, loadFacts, provenanceOf, redisText } from './provenance.ts'
import { sampleTable } from './samples.ts'

/** `npm run load -- scaling`. */
export function scalingPart(result: ScalingResult): Part {
  const { series, options, redis, poolSize, clients, generator } = result
  return {
    name: 'scaling',
    title: 'Scaling: connections, API processes, distance to Redis',
    headline: series.flatMap(headlineOf),
    sections: series.map((one) => section(one, result)),
    provenance: provenanceOf(result, [
      ['Redis', redisText(redis)],
      ['Pool', `${counted(poolSize, 'connection')} per API process`],
      ['Clients', clientsText(clients)],
      ...loadFacts(generator, options),
    ]),
    samples: series
      .filter(({ samples }) => samples.length > 0)
      .map(({ by, samples }) => sampleTable(`Every run by ${by}`, samples)),
    document: result,
  }
}

const titles: Record<Dimension, string> = {
  connections: 'By HTTP connections',
  workers: 'By API processes',
  distance: 'By distance to Redis',
}

const labels: Record<Dimension, string> = {
  connections: 'HTTP connections at the same time',
  workers: 'API processes',
  distance: 'way to Redis',
}

function settingOf(by: Dimension, point: ScalingPoint): string {
  if (by === 'distance') return point.link
  return (by === 'connections' ? point.connections : point.workers).toLocaleString('en-US')
}

function section({ by, points }: ScalingSeries, ending: Ending): Section {
  const summaries = points.flatMap((point) => point.summaries)
  return {
    title: titles[by],
    paragraphs: [
      ...endingText(ending),
      ...(by === 'distance' ? [`${points.map(({ linkText }) => linkText).join('; ')}.`] : []),
    ],
    charts: points.length > 1 ? [chart(by, points)] : [],
    tables: [table(by, points)],
    notes: [
      ...(points.some(({ oversubscribed }) => oversubscribed)
        ? [
            '‡ The processes of the API, Redis and the generator want more cores than there are: they wait for each other.',
          ]
        : []),
      ...notesOf(summaries),
    ],
  }
}

const variantsOf = (points: readonly ScalingPoint[]) => [
  ...new Set(points.flatMap(({ summaries }) => summaries.map(({ variant }) => variant))),
]

const rowOf = ({ summaries }: ScalingPoint, name: string): VariantSummary | undefined =>
  summaries.find(({ variant }) => variant === name)

function chart(by: Dimension, points: readonly ScalingPoint[]): LineChart {
  const names = points.map((point) => settingOf(by, point))
  const lines = variantsOf(points).map((variant) => ({
    name: variant,
    points: points.map(
      (point, index) => [index, rowOf(point, variant)?.requestsPerSecond.median ?? null] as const,
    ),
  }))
  const told = lines.map(
    ({ name, points }) => `${name} ${points.map(([, y]) => figure(y ?? Number.NaN)).join(', ')}`,
  )
  return {
    kind: 'lines',
    title: `Requests per second by ${labels[by]}`,
    description: `Requests per second at ${names.join(', ')}: ${told.join('; ')}.`,
    unit: 'requests/s',
    x: { label: labels[by], names },
    logarithmic: by === 'distance',
    lines,
  }
}

function table(by: Dimension, points: readonly ScalingPoint[]): ReportTable {
  const [reference] = referencesOf(variantsOf(points))
  return {
    caption: `${titles[by]}: medians of the rounds (range)`,
    head: [
      labels[by],
      ...(by === 'distance' ? ['PING takes'] : []),
      'variant',
      'requests/s (range)',
      `× ${reference ?? ''} (range)`,
      'p50 ms',
      'p99 ms',
      'API CPU µs /req.',
      'Redis CPU µs /req.',
    ],
    rows: points.flatMap((point) =>
      point.summaries.map((row) => [
        `${settingOf(by, point)}${point.oversubscribed ? ' ‡' : ''}`,
        ...(by === 'distance' ? [pingText(point)] : []),
        nameOf(row),
        withRange(row.requestsPerSecond),
        row.variant === reference ? '1' : withRange((reference && row.ratios[reference]) ?? null),
        figure(row.latency.p50?.median ?? Number.NaN),
        figure(row.latency.p99?.median ?? Number.NaN),
        figure(row.apiCpuMicros.median),
        figure(row.redisCpuMicros.median),
      ]),
    ),
    texts: [by === 'distance' ? 2 : 1],
  }
}

const pingText = ({ pingMs }: ScalingPoint) =>
  pingMs === null ? '-' : `${Number(pingMs.toPrecision(3))} ms`

/** How batch compares with naive at the two ends of a series, where both rows are sound. */
function headlineOf({ by, points }: ScalingSeries): string[] {
  if (by !== 'distance') return []
  const told = points.flatMap((point) => {
    const [naive, batch] = [rowOf(point, 'naive'), rowOf(point, 'batch')]
    const ratio = batch?.ratios.naive
    if (!naive || !batch || !ratio || isDoubtful(naive) || isDoubtful(batch)) return []
    return [`${figure(ratio.median)} times (${point.link})`]
  })
  const [near, far] = [told[0], told.at(-1)]
  if (near === undefined || far === undefined || near === far) return []
  return [`By distance to Redis, batch answers from ${near} to ${far} as many requests as naive.`]
}
