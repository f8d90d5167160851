import { join } from 'node:path'
import { Rows } from '../experiment/rows.ts'
import { readResult } from './files.ts'

// The results of examples/pattern as a drawing: rate and CPU time by distance. Colors are readable on light and dark
// backgrounds, and strategies differ by their marks, too. With a logarithmic scale, equal factors have equal heights.

const results = { 'one caller': 'pattern.json', '64 callers': 'pattern-64.json' }
const metrics = {
  callsPerSecond: 'page views per second',
  clientCpuMicros: 'CPU µs of the client per view',
  cpuMicros: 'CPU µs of Redis per view',
}
const distances = { loopback: 'same machine', '0.3ms@1Gb/s': '0.3 ms', '1ms@1Gb/s': '1 ms' }
const strategies = {
  naive: { color: '#d9544d', mark: 'M-4-4h8v8h-8z' },
  sequential: { color: '#ad7600', mark: 'M0-6l6 6l-6 6l-6-6z' },
  pipeline: { color: '#3f86dd', mark: 'M0-9l8 14h-16z' },
  batch: { color: '#2e9e5b', mark: 'M-4 0a4 4 0 0 1 8 0a4 4 0 0 1-8 0z' },
}
type Strategy = keyof typeof strategies

/** Of a panel, and of a panel with its labels. */
const [WIDTH, HEIGHT] = [290, 130]
const [COLUMN, ROW] = [WIDTH + 70, HEIGHT + 66]
const [LEFT, TOP] = [56, 66]
const TICKS = Array.from({ length: 8 }, (_, power) => [10 ** power, 3 * 10 ** power]).flat()

/** An SVG image. @param folder of the published results. */
export async function patternChart(folder: string): Promise<string> {
  const columns = await Promise.all(
    Object.entries(results).map(async ([callers, file]) => {
      const { experiment, result } = await readResult(join(folder, file))
      return { callers, rows: Rows.of(experiment, result.samples) }
    }),
  )
  const panels = Object.entries(metrics).flatMap(([metric, title], row) => {
    const all = columns.flatMap(({ rows }) => rows.all.flatMap((one) => one.median(metric) ?? []))
    const least = TICKS.findLastIndex((tick) => tick <= Math.min(...all))
    const most = TICKS.findIndex((tick) => tick >= Math.max(...all))
    const ticks = TICKS.slice(least, most + 1)
    const y = heightOf(ticks)
    return columns.map(({ callers, rows }, column) => [
      `<g transform="translate(${LEFT + column * COLUMN} ${TOP + row * ROW})">`,
      `<text x="-8" y="-16" font-weight="bold">${title}, ${callers}</text>`,
      ...ticks.flatMap((value) => tick(value.toLocaleString('en-US'), y(value))),
      ...Object.values(distances).map(
        (text, index) =>
          `<text x="${xOf(index)}" y="${HEIGHT + 20}" text-anchor="middle">${text}</text>`,
      ),
      ...(Object.keys(strategies) as Strategy[]).flatMap((strategy) =>
        line(
          strategy,
          Object.keys(distances).flatMap((link, index) => {
            const value = rows.find({ link, strategy })?.median(metric) ?? null
            return value === null ? [] : `${xOf(index)} ${y(value).toFixed(1)}`
          }),
        ),
      ),
      '</g>',
    ])
  })
  const legend = (Object.keys(strategies) as Strategy[]).flatMap((strategy, index) => [
    ...line(strategy, [`${LEFT + index * 100} 16`]),
    `<text x="${LEFT + 14 + index * 100}" y="20">${strategy}</text>`,
  ])
  const size = `${LEFT + 2 * COLUMN - 40} ${TOP + 3 * ROW - 30}`
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#787f88">`,
    '<title>Rate and CPU time per page view of four strategies, by distance of Redis</title>',
    ...legend,
    ...panels.flat(),
    '</svg>',
  ].join('\n')}\n`
}

/** A logarithmic scale. Returns the y of a value. */
function heightOf(ticks: readonly number[]) {
  const [least = 1, most = 1] = [ticks[0], ticks.at(-1)]
  return (value: number) => HEIGHT * (1 - Math.log(value / least) / Math.log(most / least))
}

const xOf = (index: number) => WIDTH * (0.15 + 0.35 * index)

function tick(text: string, at: number): string[] {
  const y = at.toFixed(1)
  return [
    `<path d="M0 ${y}h${WIDTH}" stroke="#787f88" stroke-opacity="0.3"/>`,
    `<text x="-8" y="${y}" dy="4" text-anchor="end">${text}</text>`,
  ]
}

/** A line with a mark at each point. */
function line(strategy: Strategy, points: readonly string[]): string[] {
  const { color, mark } = strategies[strategy]
  const look =
    strategy === 'pipeline' ? `fill="none" stroke="${color}" stroke-width="1.5"` : `fill="${color}"`
  return [
    `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
    ...points.map((point) => `<path transform="translate(${point})" d="${mark}" ${look}/>`),
  ]
}
