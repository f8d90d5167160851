import { styleText } from 'node:util'
import { GENERATOR_LIMIT, isDisturbed, referencesOf, type VariantSummary } from '../http/summary.ts'
import { errorKinds, figure, percent, renderTable, withInterval, withRange } from '../table.ts'
import type { Dimension, ScalingPoint, ScalingSeries } from './result.ts'

const titles: Record<Dimension, string> = {
  connections: 'By HTTP connections',
  workers: 'By API processes, over 64 connections',
  distance: 'By distance to Redis, over 64 connections',
}

const heads: Record<Dimension, string> = {
  connections: 'connections',
  workers: 'processes',
  distance: 'way to Redis',
}

/** A row for each variant at each point: about 110 columns wide. */
export function seriesTable({ by, points }: ScalingSeries): string {
  const names = points.flatMap(({ summaries }) => summaries.map(({ variant }) => variant))
  const [reference] = referencesOf([...new Set(names)])
  return renderTable({
    title: titles[by],
    head: [
      heads[by],
      ...(by === 'distance' ? ['PING\ntakes'] : []),
      'variant',
      'requests/s\nmedian (range)',
      `× ${reference ?? ''}\nmean (95 % interval)`,
      'p50\nms',
      'p99\nms',
      'errors',
      'API\nCPU µs\n/req.',
      'Redis\nCPU µs\n/req.',
    ],
    rows: points.flatMap((point) =>
      point.summaries.map((row, index) => [
        index === 0 ? whereText(by, point) : '',
        ...(by === 'distance' ? [index === 0 ? pingText(point) : ''] : []),
        `${row.variant}${row.generatorAtLimit ? ' *' : ''}`,
        withRange(row.requestsPerSecond),
        row.variant === reference
          ? '1'
          : withInterval((reference && row.ratios[reference]) ?? null),
        figure(row.latency.p50?.median ?? Number.NaN),
        figure(row.latency.p99?.median ?? Number.NaN),
        errorKinds(row.errors).replaceAll(', ', '\n'),
        figure(row.apiCpuMicros.median),
        figure(row.redisCpuMicros.median),
      ]),
    ),
  })
}

function whereText(by: Dimension, point: ScalingPoint): string {
  const where = {
    connections: point.connections.toLocaleString('en-US'),
    workers: String(point.workers),
    distance: point.link,
  }
  return `${where[by]}${point.oversubscribed ? ' ‡' : ''}`
}

const pingText = ({ pingMs }: ScalingPoint) =>
  pingMs === null ? '-' : `${Number(pingMs.toPrecision(3))} ms`

/** The result in sentences, and what the marks in the tables mean. */
export function conclusions(series: readonly ScalingSeries[]): string {
  const points = series.flatMap((one) => one.points)
  const rows = points.flatMap(({ summaries }) => summaries)
  const lines = series.flatMap((one) => (one.by === 'distance' ? distanceSentences(one) : []))
  if (points.some(({ oversubscribed }) => oversubscribed)) {
    lines.push(
      '‡ The processes of the API and the generator could fill more cores than there are: they wait for each other.',
    )
  }
  if (rows.some(({ generatorAtLimit }) => generatorAtLimit)) {
    lines.push(
      `* The generator was busy more than ${percent(GENERATOR_LIMIT)} of the time: it may have been the ` +
        'bottleneck, so no ratio is given. --generator wrk may help.',
    )
  }
  if (rows.some(isDisturbed)) {
    const most = Math.max(...rows.map(({ elsewhere }) => elsewhere))
    lines.push(
      `Up to ${percent(most)} of the CPU time went to programs that are no part of this, or to other ` +
        'guests of the host: trust the CPU time per request rather than the rates, or repeat it.',
    )
  }
  return lines.join('\n')
}

function distanceSentences({ points }: ScalingSeries): string[] {
  return points.flatMap(({ link, summaries }) => {
    const find = (name: string) => summaries.find(({ variant }) => variant === name)
    const ratio = times(find('pipeline'), find('sequential'))
    if (ratio === null) return []
    const text = `${link}: ${figure(ratio)} times as many requests with a pipeline as with a command at a time.`
    return [styleText('bold', text)]
  })
}

/** Median by median; null where nothing can be claimed. */
function times(one: VariantSummary | undefined, base: VariantSummary | undefined): number | null {
  if (!one || !base || one.generatorAtLimit || base.generatorAtLimit) return null
  const below = base.requestsPerSecond.median
  return below === 0 ? null : one.requestsPerSecond.median / below
}
