import type { EChartsCoreOption } from 'echarts/core'
import type { LineChart } from '../../experiment/section.ts'
import { legend, nameAxis, textWidth, valueAxis } from './bars.ts'
import { type Canvas, colourOf, dashes, grid, muted, symbols, text } from './theme.ts'

const FONT = 12

/** More on a line hide what they are on. */
const MOST_SYMBOLS = 25

/** Lines with their names at their ends; in narrow windows, where there is no room for that, above. */
export function lineOption(chart: LineChart, canvas: Canvas) {
  const { lines, unit, logarithmic } = chart
  const { narrow } = canvas
  const names = lines.map(({ name }) => name)
  const rowsOfLegend = Math.ceil(names.reduce((sum, name) => sum + textWidth(name) + 44, 0) / 340)
  const top = narrow ? rowsOfLegend * 22 + 28 : 26
  const height = (narrow ? 250 : 300) + top
  const longest = Math.max(...lines.map(({ points }) => points.length))
  const values = lines.flatMap(({ points }) => points.flatMap(([, y]) => (y === null ? [] : [y])))
  const option: EChartsCoreOption = {
    grid: {
      left: 64,
      right: narrow ? 16 : Math.max(...names.map(textWidth)) + 24,
      top,
      bottom: 48,
    },
    ...(narrow && { legend: legend(8) }),
    xAxis: chart.x === 'percentiles' ? percentileAxis(chart, narrow) : xAxis(chart.x),
    yAxis: {
      ...valueAxis(unit, canvas),
      nameLocation: 'end',
      nameGap: 10,
      nameTextStyle: { color: muted, fontSize: FONT, align: 'left', padding: [0, 0, 0, -56] },
      splitNumber: 5,
      ...(logarithmic ? { type: 'log', ...decades(values) } : { min: 0 }),
    },
    series: lines.map(({ name, points }, index) => ({
      type: 'line',
      name,
      silent: true,
      clip: false,
      color: colourOf(name),
      symbol: symbols[index % symbols.length],
      symbolSize: 7,
      showSymbol: chart.x !== 'percentiles' || longest < MOST_SYMBOLS,
      lineStyle: { width: 2, type: dashes[index % dashes.length] },
      data: points.map(([x, y]) => [chart.x === 'percentiles' ? 1 / (1 - x) : x, y]),
      endLabel: { show: !narrow, formatter: '{a}', color: text, fontSize: FONT, distance: 8 },
      labelLayout: { moveOverlap: 'shiftY' },
    })),
  }
  return { option, height }
}

/** Whole powers of ten around the values, so that the axis has round figures. */
function decades(values: readonly number[]) {
  const positive = values.filter((value) => value > 0)
  return {
    min: 10 ** Math.floor(Math.log10(Math.min(...positive, 10))),
    max: 10 ** Math.ceil(Math.log10(Math.max(...positive, 1))),
  }
}

function xAxis({ label, names }: { label: string; names: readonly string[] }) {
  return {
    ...nameAxis(names),
    boundaryGap: true,
    name: label,
    nameLocation: 'middle',
    nameGap: 28,
    nameTextStyle: { color: muted, fontSize: FONT },
  }
}

/** As HdrHistogram draws it: 90 %, 99 %, 99.9 % … are equally far apart. */
function percentileAxis({ lines }: LineChart, narrow: boolean) {
  const shares = lines.flatMap(({ points }) => points.map(([share]) => share))
  return {
    type: 'log',
    min: 1,
    max: Math.max(10, ...shares.map((share) => 1 / (1 - share))),
    name: 'of the requests were faster',
    nameLocation: 'middle',
    nameGap: 28,
    nameTextStyle: { color: muted, fontSize: FONT },
    axisLine: { show: true, lineStyle: { color: muted } },
    axisLabel: {
      color: muted,
      fontSize: narrow ? 11 : FONT,
      formatter: (value: number) => percentile(value),
    },
    splitLine: { lineStyle: { color: grid } },
  }
}

/** `99.9 %` for 1,000: one request of so many is slower. */
function percentile(oneOf: number): string {
  const exponent = Math.log10(oneOf)
  if (Math.abs(exponent - Math.round(exponent)) > 1e-6) return ''
  if (oneOf < 2) return '0 %'
  return `${axisPercent(100 - 100 / oneOf)} %`
}

const axisPercent = (value: number) =>
  new Intl.NumberFormat('en-US', { maximumFractionDigits: 5 }).format(value)
