import type { EChartsCoreOption } from 'echarts/core'
import { figure } from '../../experiment/figures.ts'
import type { BarChart, Chart, GroupedChart, LineChart } from '../../experiment/section.ts'

// The ECharts options of a chart. Colours are CSS variables of the page, so that a drawing works in both themes.

/** The width of a drawing in pixels: narrow enough for a phone, and smaller for charts that share an axis. */
export const widthOf = (chart: Chart) => (chart.kind === 'lines' && chart.shared ? 320 : 400)

export const text = 'var(--text)'
const muted = 'var(--muted)'
const grid = 'var(--grid)'
const fontSize = 12
const ROW = 34

/** The colour of a variant, which is the same in all charts. */
const colour = (name: string) =>
  `var(--colour-${name.replaceAll(/[^\w-]/g, '')}, var(--colour-other))`

// Series differ by pattern as well as colour.
const dashes = ['solid', [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]]
const hatching = {
  dashArrayX: [1, 0],
  dashArrayY: [3, 4],
  rotation: -Math.PI / 4,
  color: 'var(--background)',
}

/** In a chart with both, the other bars are grey. */
const highlighted = ['naive', 'batch']

function barColour(name: string, names: readonly string[]): string {
  const isQuiet = highlighted.every((one) => names.includes(one)) && !highlighted.includes(name)
  return isQuiet ? 'var(--border-strong)' : colour(name)
}

/** The approximate width of the longest text, in pixels. */
const widest = (texts: readonly string[]) =>
  Math.max(...texts.map(({ length }) => length * fontSize * 0.58))

const mutedText = { color: muted, fontSize }
const axisLine = { show: true, lineStyle: { color: muted } }
const splitLine = { lineStyle: { color: grid } }
const axisName = { nameLocation: 'middle', nameGap: 28, nameTextStyle: mutedText }

const valueAxis = (name: string) => ({
  type: 'value',
  min: 0,
  name,
  ...axisName,
  axisLine,
  splitNumber: 3,
  axisLabel: {
    ...mutedText,
    formatter: (value: number) => value.toLocaleString('en-US', { maximumSignificantDigits: 3 }),
    hideOverlap: true,
  },
  splitLine,
})

/** @param thins whether to omit names that have no room. */
const nameAxis = (data: string[], thins = false) => ({
  type: 'category',
  data,
  axisLabel: { color: text, fontSize, interval: thins ? 'auto' : 0 },
  axisLine,
  axisTick: { show: false },
})

/** The names of the series, above the drawing. */
const legend = {
  top: 0,
  left: 0,
  selectedMode: false,
  itemGap: 16,
  backgroundColor: 'transparent',
  borderColor: grid,
  textStyle: { color: text, fontSize },
}

export function chartOptions(chart: Chart): EChartsCoreOption & { height: number } {
  if (chart.kind === 'bars') return barOptions(chart)
  return chart.kind === 'lines' ? lineOptions(chart) : stackedOptions(chart)
}

const horizontal = (rows: string[], unit: string, top: number) => ({
  height: rows.length * ROW + top + 54,
  grid: { left: widest(rows) + 16, right: 64, top, bottom: 48 },
  yAxis: { ...nameAxis(rows), inverse: true },
  xAxis: valueAxis(unit),
})

const bar = { type: 'bar', silent: true, barWidth: 20 }

const CEILING_ROW = 16

/** Horizontal bars with the range as a whisker and the value as text. Ceilings are lines across all bars. */
function barOptions({ bars, ceilings, unit }: BarChart) {
  const names = bars.map(({ name }) => name)
  const top = 6 + ceilings.length * CEILING_ROW
  /** The whisker and the figure. */
  const renderItem = (_: unknown, api: CustomApi) => {
    const { low = 0, high = 0, value = 0 } = bars[api.value(0)] ?? {}
    const at = (x: number) => api.coord([x, api.value(0)])
    const [[left, y], [right], [end]] = [at(low), at(high), at(Math.max(value, high))]
    const d = `M${left} ${y}H${right}M${left} ${y - 4}v8M${right} ${y - 4}v8`
    const words = { text: figure(value), fill: text, fontSize, fontFamily: 'inherit' }
    return {
      type: 'group',
      children: [
        { type: 'path', shape: { d }, style: { stroke: text, lineWidth: 1.5, fill: 'none' } },
        { type: 'text', x: end + 8, y, style: { ...words, textVerticalAlign: 'middle' } },
      ],
    }
  }
  /** A line with its name above. Each name is in its own row, so that names do not overlap. */
  const renderCeiling = ({ coordSys, dataIndex }: CustomParameters, api: CustomApi) => {
    const { name = '', value = 0 } = ceilings[dataIndex] ?? {}
    const [x] = api.coord([value, 0])
    const y = 6 + dataIndex * CEILING_ROW
    const d = `M${x} ${y + 10}V${coordSys.y + coordSys.height}`
    const label = { text: `${name} ${figure(value)}`, fill: muted, fontSize, fontFamily: 'inherit' }
    return {
      type: 'group',
      children: [
        { type: 'path', shape: { d }, style: { stroke: muted, lineDash: [4, 3], fill: 'none' } },
        {
          type: 'text',
          x,
          y,
          style: { ...label, textAlign: 'right', textVerticalAlign: 'middle' },
        },
      ],
    }
  }
  const data = bars.map(({ name, value, doubtful }) => ({
    value,
    itemStyle: { color: barColour(name, names), ...(doubtful && { decal: hatching }) },
  }))
  const ranges = bars.map(({ value, low, high }, index) => [index, low, Math.max(value, high)])
  const custom = { type: 'custom', silent: true, encode: { x: [1, 2], y: 0 }, z: 3 }
  return {
    ...horizontal(names, unit, top),
    series: [
      { ...bar, data },
      { ...custom, data: ranges, renderItem },
      {
        ...{ ...custom, renderItem: renderCeiling },
        data: ceilings.map(({ value }) => [0, value, value]),
      },
    ],
  }
}

/** The first argument of `renderItem`. */
interface CustomParameters {
  dataIndex: number
  coordSys: { y: number; height: number }
}

/** The second argument of `renderItem`. */
interface CustomApi {
  value(dimension: number): number
  coord(data: [number, number]): [number, number]
}

/** Horizontal stacked bars with their sum. All parts but the first are also hatched. */
function stackedOptions({ names, groups, unit }: GroupedChart) {
  const total = (index: number) => groups.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
  return {
    ...horizontal([...names], unit, 34),
    legend,
    series: groups.map(({ name, values }, group) => ({
      ...bar,
      name,
      stack: 'all',
      itemStyle: {
        color: colour(['batch', 'naive-lean', 'pipeline'][group % 3] ?? ''),
        ...(group > 0 && { decal: hatching }),
      },
      data: [...values],
      label: {
        show: group === groups.length - 1,
        position: 'right',
        color: text,
        fontSize,
        formatter: ({ dataIndex }: { dataIndex: number }) => figure(total(dataIndex)),
      },
    })),
  }
}

function lineOptions(chart: LineChart) {
  const { lines, unit, logarithmic, x, shared } = chart
  const legendWidth = lines.reduce((sum, { name }) => sum + widest([name]) + 56, 0)
  // A chart that shares its axis has one line, which its title names.
  const top = shared ? 28 : Math.ceil(legendWidth / (widthOf(chart) - 20)) * 22 + 28
  const isPercentiles = x === 'percentiles'
  return {
    height: (shared ? 170 : 250) + top,
    grid: { left: 64, right: 32, top, bottom: 48 },
    ...(!shared && { legend }),
    xAxis: {
      ...(isPercentiles
        ? percentileAxis(lines)
        : { ...nameAxis([...x.names], x.names.length > 25), name: x.label }),
      ...axisName,
    },
    yAxis: {
      ...valueAxis(unit),
      nameLocation: 'end',
      nameGap: 10,
      nameTextStyle: { ...mutedText, align: 'left', padding: [0, 0, 0, -56] },
      ...(logarithmic && { type: 'log', min: shared?.[0], max: shared?.[1] }),
    },
    series: lines.map(({ name, points }, index) => ({
      type: 'line',
      name,
      silent: true,
      clip: false,
      color: colour(name),
      symbol: 'circle',
      showSymbol: points.length < 25, // more would hide the line
      lineStyle: { width: 2, type: dashes[index % dashes.length] },
      data: points.map(([at, y]) => [isPercentiles ? 1 / (1 - at) : at, y]),
    })),
  }
}

/** The percentile axis of HdrHistogram: 90 %, 99 %, 99.9 % … have equal distances. */
function percentileAxis(lines: LineChart['lines']) {
  const oneOf = lines.flatMap(({ points }) => points.map(([share]) => 1 / (1 - share)))
  return {
    type: 'log',
    min: 1,
    max: Math.max(10, ...oneOf),
    name: 'of the requests were faster',
    axisLine,
    axisLabel: { ...mutedText, formatter: percentile },
    splitLine,
  }
}

/** `99.9 %` for 1,000: one request in 1,000 is slower. */
function percentile(oneOf: number): string {
  if (!Number.isInteger(Math.log10(Math.round(oneOf)))) return ''
  return `${Number((100 - 100 / oneOf).toFixed(5))} %`
}
