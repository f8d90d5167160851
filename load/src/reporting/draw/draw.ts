import { BarChart, CustomChart, LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import type { Chart } from '../../experiment/section.ts'
import { Html, html } from '../html.ts'
import { chartOptions, text, widthOf } from './options.ts'

use([BarChart, CustomChart, LineChart, GridComponent, LegendComponent, LabelLayout, SVGRenderer])

/** A chart as SVG. What it shows is in the table beside it, for readers who cannot see it. */
export function drawChart(chart: Chart): Html {
  const { height, ...options } = chartOptions(chart)
  const instance = init(null, null, { renderer: 'svg', ssr: true, width: widthOf(chart), height })
  instance.setOption({
    animation: false,
    textStyle: { color: text, fontFamily: 'inherit' },
    ...options,
  })
  const svg = instance.renderToSVGString()
  instance.dispose()
  return html`<svg role="img" aria-label="${chart.title}" ${withoutStyles(svg)}`
}

/**
 * What follows `<svg`, without what is for hovering. Style attributes become attributes of their own, since
 * the page's Content-Security-Policy forbids them.
 */
function withoutStyles(svg: string): Html {
  return new Html(
    svg
      .replaceAll(/<style[^>]*>.*?<\/style>/gs, '')
      .replaceAll('fill="#000"', 'fill="none"') // of clip paths, and of lines in legends
      .replaceAll(/ (?:class|ecmeta_\w+|pointer-events)="[^"]*"/g, '')
      .replaceAll(/ style="([^"]*)"/g, (_, style: string) =>
        style.replaceAll(/\s*([\w-]+)\s*:\s*([^;]+);?/g, ' $1="$2"'),
      )
      .replace(/^<svg[^>]*?(viewBox="[^"]*")[^>]*>/, '$1>'),
  )
}
