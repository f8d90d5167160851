import { BarChart, CustomChart, LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import { figure } from '../../experiment/figures.ts'
import type { Chart } from '../../experiment/section.ts'
import { Html, html } from '../html.ts'
import { chartOptions, text, WIDTH } from './options.ts'

use([BarChart, CustomChart, LineChart, GridComponent, LegendComponent, LabelLayout, SVGRenderer])

/** A chart as SVG; `id` is unique in the page. */
export function drawChart(chart: Chart, id: string): Html {
  const { height, ...options } = chartOptions(chart)
  const instance = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  try {
    const textStyle = { color: text, fontFamily: 'inherit' }
    instance.setOption({ animation: false, textStyle, ...options })
    return finish(instance.renderToSVGString(), chart, id)
  } finally {
    instance.dispose()
  }
}

/**
 * Adds the words, and removes what is for hovering. Style attributes become attributes of their own, since
 * the page's Content-Security-Policy forbids them.
 */
function finish(svg: string, chart: Chart, id: string): Html {
  const words = html`<title id="${id}-title">${chart.title}</title><desc id="${id}-text">${wordsOf(chart)}</desc>`
  return new Html(
    svg
      .replaceAll(/<style[^>]*>.*?<\/style>/gs, '')
      .replaceAll('fill="#000"', 'fill="none"') // of clip paths, and of lines in legends
      .replaceAll(/ (?:class|ecmeta_\w+|pointer-events)="[^"]*"/g, '')
      .replaceAll(/ style="([^"]*)"/g, (_, style: string) =>
        style.replaceAll(/\s*([\w-]+)\s*:\s*([^;]+);?/g, ' $1="$2"'),
      )
      .replace(
        /^<svg[^>]*?(viewBox="[^"]*")[^>]*>/,
        (_, box) => `<svg ${box} role="img" aria-labelledby="${id}-title ${id}-text">${words.text}`,
      ),
  )
}

/** What a chart shows, for readers who cannot see it. */
function wordsOf(chart: Chart): string {
  const list = (values: readonly (number | null)[]) =>
    values.map((value) => figure(value ?? Number.NaN)).join(', ')
  if (chart.kind === 'bars') {
    return `${chart.unit}: ${chart.bars.map(({ name, value }) => `${name} ${figure(value)}`).join('; ')}.`
  }
  if (chart.kind === 'stacked') {
    const groups = chart.groups.map(({ name, values }) => `${name} ${list(values)}`)
    return `${chart.unit} of ${chart.names.join(', ')}: ${groups.join('; ')}.`
  }
  const { x, unit, lines } = chart
  if (x === 'percentiles') {
    const within = lines.map(({ name, points }) => {
      const [, value = null] = points.findLast(([share]) => share <= 0.99) ?? []
      return `${name} ${list([value])}`
    })
    return `${unit} within which 99 % of the requests were answered: ${within.join('; ')}.`
  }
  const texts = lines.map(({ name, points }) => `${name} ${list(points.map(([, y]) => y))}`)
  return `${unit} at ${x.names.join(', ')}: ${texts.join('; ')}.`
}
