import type { EChartsCoreOption } from 'echarts/core'
import { figure } from '../../experiment/figures.ts'
import type { BarChart, Chart, GroupedChart, LineChart } from '../../experiment/section.ts'

// What ECharts draws of a chart. Colours are the page's CSS variables, so that one drawing suits both themes.

/** Of the drawing, in pixels: narrow enough for a phone. */
export const WIDTH = 400

export const text = 'var(--text)'
const muted = 'var(--muted)'
const grid = 'var(--grid)'
const fontSize = 12
const ROW = 34

/** The same variant has the same colour in all charts; all other names share one. */
const colours: Readonly<Record<string, number>> = {
  ...{ naive: 0, 'naive-lean': 1, sequential: 2, pipeline: 3 },
  ...{ transaction: 4, batch: 5, noop: 6, script: 8 },
}
const colour = (name: string) => `var(--colour-${colours[name] ?? 7})`

// Readers who see no colours tell bars and lines apart by these.
const symbols = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'arrow']
const dashes = ['solid', [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]]
const hatching = {
  symbol: 'rect',
  dashArrayX: [1, 0],
  dashArrayY: [3, 4],
  rotation: -Math.PI / 4,
  color: 'var(--background)',
}

/** About the width of the longest of some texts, in pixels. */
const widest = (names: readonly string[]) =>
  Math.max(...names.map(({ length }) => length * fontSize * 0.58))

type Options = EChartsCoreOption & { height: number }

export function chartOptions(chart: Chart): Options {
  if (chart.kind === 'bars') return barOptions(chart)
  return chart.kind === 'lines' ? lineOptions(chart) : groupedOptions(chart)
}

const axisText = { color: muted, fontSize }

const valueAxis = (name: string) => ({
  type: 'value',
  min: 0,
  name,
  nameLocation: 'middle',
  nameGap: 26,
  nameTextStyle: axisText,
  axisLine: { lineStyle: { color: muted } },
  splitNumber: 3,
  axisLabel: {
    ...axisText,
    formatter: (value: number) => value.toLocaleString('en-US', { maximumSignificantDigits: 3 }),
    hideOverlap: true,
  },
  splitLine: { lineStyle: { color: grid } },
})

const nameAxis = (names: readonly string[]) => ({
  type: 'category',
  data: [...names],
  axisLabel: { color: text, fontSize, interval: 0 },
  axisLine: { lineStyle: { color: muted } },
  axisTick: { show: false },
})

/** The names of the series, above the drawing. */
const legend = {
  top: 0,
  left: 0,
  selectedMode: false,
  itemWidth: 26,
  itemHeight: 10,
  backgroundColor: 'transparent',
  borderColor: grid,
  textStyle: { color: text, fontSize },
}

/** Horizontal bars, the range as a whisker, the figure beside it. */
function barOptions({ bars, unit }: BarChart): Options {
  const names = bars.map(({ name }) => name)
  const label = { fill: text, fontSize, fontFamily: 'inherit', fontWeight: 600 }
  /** The whisker and the figure. */
  const renderItem = (_: unknown, api: CustomApi) => {
    const { low = 0, high = 0, value = 0 } = bars[api.value(0)] ?? {}
    const at = (x: number) => api.coord([x, api.value(0)])
    const [[left, y], [right], [end]] = [at(low), at(high), at(Math.max(value, high))]
    const d = `M${left} ${y}H${right}M${left} ${y - 4}v8M${right} ${y - 4}v8`
    return {
      type: 'group',
      children: [
        { type: 'path', shape: { d }, style: { stroke: text, lineWidth: 1.5, fill: 'none' } },
        {
          type: 'text',
          x: end + 8,
          y,
          style: { ...label, text: figure(value), textVerticalAlign: 'middle' },
        },
      ],
    }
  }
  return {
    height: bars.length * ROW + 60,
    grid: { left: widest(names) + 16, right: 64, top: 6, bottom: 48 },
    yAxis: { ...nameAxis(names), inverse: true },
    xAxis: valueAxis(unit),
    series: [
      {
        type: 'bar',
        silent: true,
        barWidth: 20,
        data: bars.map(({ name, value, doubtful }) => ({
          value,
          itemStyle: { color: colour(name), ...(doubtful && { decal: hatching }) },
        })),
      },
      {
        type: 'custom',
        silent: true,
        data: bars.map(({ value, low, high }, index) => [index, low, Math.max(value, high)]),
        encode: { x: [1, 2], y: 0 },
        renderItem,
        z: 3,
      },
    ],
  }
}

/** What ECharts passes to `renderItem`. */
interface CustomApi {
  value(dimension: number): number
  coord(data: [number, number]): [number, number]
}

/** Horizontal bars of several parts; all but the first part are hatched, too. */
function groupedOptions({ names, groups, unit, kind }: GroupedChart): Options {
  const isStacked = kind === 'stacked'
  const total = (index: number) => groups.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
  return {
    height: names.length * (isStacked ? 1 : groups.length * 0.72) * ROW + 92,
    grid: { left: widest(names) + 16, right: 64, top: 34, bottom: 48 },
    legend,
    yAxis: { ...nameAxis(names), inverse: true },
    xAxis: valueAxis(unit),
    series: groups.map(({ name, values }, group) => ({
      type: 'bar',
      name,
      silent: true,
      barWidth: isStacked ? 20 : 16,
      ...(isStacked && { stack: 'all' }),
      itemStyle: {
        color: `var(--colour-${[5, 1, 3][group % 3]})`,
        ...(group > 0 && { decal: hatching }),
      },
      data: [...values],
      label: {
        show: !isStacked || group === groups.length - 1,
        position: 'right',
        color: text,
        fontSize,
        fontWeight: 600,
        formatter: ({ dataIndex, value }: { dataIndex: number; value: number }) =>
          figure(isStacked ? total(dataIndex) : value),
      },
    })),
  }
}

/** More symbols on a line hide the line. */
const MAX_SYMBOLS = 25

function lineOptions({ lines, unit, logarithmic, x }: LineChart): Options {
  const names = lines.map(({ name }) => name)
  const legendRows = Math.ceil(
    names.reduce((sum, name) => sum + widest([name]) + 44, 0) / (WIDTH - 20),
  )
  const top = legendRows * 22 + 28
  const values = lines.flatMap(({ points }) => points.flatMap(([, y]) => y ?? []))
  const longest = Math.max(...lines.map(({ points }) => points.length))
  const isPercentiles = x === 'percentiles'
  return {
    height: 250 + top,
    grid: { left: 64, right: 24, top, bottom: 48 },
    legend,
    xAxis: {
      ...(isPercentiles ? percentileAxis(lines) : { ...nameAxis(x.names), name: x.label }),
      nameLocation: 'middle',
      nameGap: 28,
      nameTextStyle: axisText,
    },
    yAxis: {
      ...valueAxis(unit),
      nameLocation: 'end',
      nameGap: 10,
      nameTextStyle: { ...axisText, align: 'left', padding: [0, 0, 0, -56] },
      ...(logarithmic && { type: 'log', ...decades(values) }),
    },
    series: lines.map(({ name, points }, index) => ({
      type: 'line',
      name,
      silent: true,
      clip: false,
      color: colour(name),
      symbol: symbols[index % symbols.length],
      symbolSize: 7,
      showSymbol: !isPercentiles || longest < MAX_SYMBOLS,
      lineStyle: { width: 2, type: dashes[index % dashes.length] },
      data: points.map(([at, y]) => [isPercentiles ? 1 / (1 - at) : at, y]),
    })),
  }
}

/** Whole powers of ten around the values, so that the axis has round figures. */
function decades(values: readonly number[]) {
  const positive = values.filter((value) => value > 0)
  return {
    min: 10 ** Math.floor(Math.log10(Math.min(...positive, 10))),
    max: 10 ** Math.ceil(Math.log10(Math.max(...positive, 1))),
  }
}

/** As HdrHistogram draws it: 90 %, 99 %, 99.9 % … are equally far apart. */
function percentileAxis(lines: LineChart['lines']) {
  const oneOf = lines.flatMap(({ points }) => points.map(([share]) => 1 / (1 - share)))
  return {
    type: 'log',
    min: 1,
    max: Math.max(10, ...oneOf),
    name: 'of the requests were faster',
    axisLine: { show: true, lineStyle: { color: muted } },
    axisLabel: { ...axisText, formatter: percentile },
    splitLine: { lineStyle: { color: grid } },
  }
}

/** `99.9 %` for 1,000: one request of so many is slower. */
function percentile(oneOf: number): string {
  const exponent = Math.log10(oneOf)
  if (Math.abs(exponent - Math.round(exponent)) > 1e-6) return ''
  const share = oneOf < 2 ? 0 : 100 - 100 / oneOf
  return `${share.toLocaleString('en-US', { maximumFractionDigits: 5 })} %`
}
