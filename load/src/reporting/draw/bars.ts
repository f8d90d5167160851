import type { EChartsCoreOption } from 'echarts/core'
import { figure } from '../../experiment/figures.ts'
import type { BarChart, GroupedChart } from '../../experiment/section.ts'
import { barStyle, type Canvas, grid, hatching, muted, text } from './theme.ts'

const FONT = 12
const ROW = 34

/** About the width of a text, in pixels. */
export const textWidth = (words: string) => words.length * FONT * 0.58

const widest = (names: readonly string[]) => Math.max(...names.map(textWidth))

export function valueAxis(unit: string, { narrow }: Canvas) {
  return {
    type: 'value',
    name: unit,
    nameLocation: 'middle',
    nameGap: 26,
    nameTextStyle: { color: muted, fontSize: FONT },
    axisLine: { lineStyle: { color: muted } },
    splitNumber: narrow ? 2 : 5,
    axisLabel: { color: muted, fontSize: FONT, formatter: axisFigure, hideOverlap: true },
    splitLine: { lineStyle: { color: grid } },
  }
}

/** A round figure of an axis: `20,000`, `0.5`. */
const axisFigure = (value: number) =>
  new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 }).format(value)

export function nameAxis(names: readonly string[]) {
  return {
    type: 'category',
    data: [...names],
    axisLabel: { color: text, fontSize: FONT, interval: 0 },
    axisLine: { lineStyle: { color: muted } },
    axisTick: { show: false },
  }
}

/** The names of the series, above the drawing. */
export const legend = (itemHeight: number) => ({
  ...{ top: 0, left: 0, selectedMode: false, itemWidth: 26, itemHeight, itemGap: 10 },
  ...{ backgroundColor: 'transparent', borderColor: grid },
  textStyle: { color: text, fontSize: FONT },
})

/** Horizontal bars, the range as a whisker, the figure beside it. */
export function barOption(chart: BarChart, canvas: Canvas) {
  const { bars, unit } = chart
  const names = bars.map(({ name }) => name)
  const height = bars.length * ROW + 60
  const option: EChartsCoreOption = {
    grid: { left: widest(names) + 16, right: 64, top: 6, bottom: 48 },
    yAxis: { ...nameAxis(names), inverse: true },
    xAxis: { ...valueAxis(unit, canvas), min: 0 },
    series: [
      {
        type: 'bar',
        silent: true,
        barWidth: 20,
        data: bars.map(({ name, value, doubtful }) => ({
          value,
          itemStyle: { ...barStyle(name), ...(doubtful && { decal: hatching }) },
        })),
      },
      {
        type: 'custom',
        silent: true,
        data: bars.map(({ low, high }, index) => [index, low, high]),
        encode: { x: [1, 2], y: 0 },
        renderItem: whisker,
        z: 3,
      },
      {
        type: 'custom',
        silent: true,
        data: bars.map(({ value, high }, index) => [index, Math.max(value, high)]),
        encode: { x: 1, y: 0 },
        renderItem: (_: unknown, api: CustomApi) => {
          const [x, y] = api.coord([api.value(1), api.value(0)])
          const label = figure(bars[api.value(0)]?.value ?? 0)
          const style = {
            text: label,
            fill: text,
            fontSize: FONT,
            fontFamily: 'inherit',
            fontWeight: 600,
          }
          return { type: 'text', x: x + 8, y, style: { ...style, textVerticalAlign: 'middle' } }
        },
        z: 3,
      },
    ],
  }
  return { option, height }
}

/** What ECharts gives to a function that draws. */
interface CustomApi {
  value(dimension: number): number
  coord(data: [number, number]): [number, number]
}

function whisker(_: unknown, api: CustomApi) {
  const [left, y] = api.coord([api.value(1), api.value(0)])
  const [right] = api.coord([api.value(2), api.value(0)])
  const style = { stroke: text, lineWidth: 1.5, fill: 'none' }
  const line = (x1: number, y1: number, x2: number, y2: number) => ({
    type: 'line',
    shape: { x1, y1, x2, y2 },
    style,
  })
  return {
    type: 'group',
    children: [
      line(left, y, right, y),
      line(left, y - 4, left, y + 4),
      line(right, y - 4, right, y + 4),
    ],
  }
}

/** Horizontal bars of several parts; all but the first part are hatched, too. */
export function groupedOption(chart: GroupedChart, canvas: Canvas) {
  const { names, groups, unit, kind } = chart
  const stacked = kind === 'stacked'
  const rows = names.length * (stacked ? 1 : groups.length * 0.72)
  const height = rows * ROW + 92
  const colours = ['var(--colour-5)', 'var(--colour-1)', 'var(--colour-3)']
  const total = (index: number) => groups.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
  const option: EChartsCoreOption = {
    grid: { left: widest(names) + 16, right: 64, top: 34, bottom: 48 },
    legend: legend(12),
    yAxis: { ...nameAxis(names), inverse: true },
    xAxis: { ...valueAxis(unit, canvas), min: 0 },
    series: groups.map(({ name, values }, group) => ({
      type: 'bar',
      name,
      silent: true,
      barWidth: stacked ? 20 : 16,
      ...(stacked && { stack: 'all' }),
      itemStyle: {
        color: colours[group % colours.length],
        ...(group > 0 && { decal: hatching }),
      },
      data: [...values],
      label: {
        show: !stacked || group === groups.length - 1,
        position: 'right',
        color: text,
        fontSize: FONT,
        fontWeight: 600,
        formatter: ({ dataIndex, value }: { dataIndex: number; value: number }) =>
          figure(stacked ? total(dataIndex) : value),
      },
    })),
  }
  return { option, height }
}
