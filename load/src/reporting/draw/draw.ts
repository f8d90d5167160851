import { BarChart, CustomChart, LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent } from 'echarts/components'
import { type EChartsCoreOption, init, use } from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import type { Chart } from '../../experiment/section.ts'
import { Html, html } from '../html.ts'
import { barOption, groupedOption } from './bars.ts'
import { lineOption } from './lines.ts'
import { type Canvas, text } from './theme.ts'

use([BarChart, CustomChart, LineChart, GridComponent, LegendComponent, LabelLayout, SVGRenderer])

const canvases: readonly Canvas[] = [
  { width: 760, narrow: false },
  { width: 350, narrow: true },
]

let drawn = 0

/** A chart as SVG, once for wide and once for narrow windows; the page's style shows one of them. */
export function drawChart(chart: Chart): Html {
  return html`${canvases.map((canvas) => draw(chart, canvas))}`
}

function draw(chart: Chart, canvas: Canvas): Html {
  const { option, height } = optionOf(chart, canvas)
  const instance = init(null, null, { renderer: 'svg', ssr: true, width: canvas.width, height })
  try {
    instance.setOption({
      animation: false,
      textStyle: { color: text, fontFamily: 'inherit' },
      ...option,
    })
    return finish(instance.renderToSVGString(), chart, canvas)
  } finally {
    instance.dispose()
  }
}

function optionOf(chart: Chart, canvas: Canvas): { option: EChartsCoreOption; height: number } {
  if (chart.kind === 'bars') return barOption(chart, canvas)
  return chart.kind === 'lines' ? lineOption(chart, canvas) : groupedOption(chart, canvas)
}

/**
 * Gives the drawing its words, and takes away what a strict Content-Security-Policy forbids (style
 * attributes, which are written as attributes of their own here) or what is for hovering.
 */
function finish(svg: string, { title, description }: Chart, { narrow }: Canvas): Html {
  const id = `chart-${++drawn}`
  const body = svg
    .replaceAll(/<style[^>]*>.*?<\/style>/gs, '')
    .replaceAll('fill="#000"', 'fill="none"') // of clip paths, and of lines in legends
    .replaceAll(/ (?:class|ecmeta_\w+|pointer-events)="[^"]*"/g, '')
    .replaceAll(/ style="([^"]*)"/g, (_, style: string) => attributes(style))
    .replace(/^<svg[^>]*?(viewBox="[^"]*")[^>]*>/, '<svg $1>')
  const opening = html`<svg class="${narrow ? 'narrow' : 'wide'}" role="img" aria-labelledby="${id} ${id}d"`
  const words = html`<title id="${id}">${title}</title><desc id="${id}d">${description}</desc>`
  return new Html(
    body.replace(/^<svg( [^>]*)>/, (_, rest) => `${opening.text}${rest}>${words.text}`),
  )
}

function attributes(style: string): string {
  return style
    .split(';')
    .map((declaration) => declaration.split(':'))
    .flatMap(([name, value]) => (name && value ? ` ${name.trim()}="${value.trim()}"` : []))
    .join('')
}
