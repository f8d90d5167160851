import { BarChart, CustomChart, LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import type { Chart } from '../../experiment/section.ts'
import { Html, html } from '../html.ts'
import { chartOptions, text, widthOf } from './options.ts'

use([BarChart, CustomChart, LineChart, GridComponent, LegendComponent, LabelLayout, SVGRenderer])

/** A chart as SVG. The table below it has the same figures, for readers who cannot see the chart. */
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
 * The text after `<svg`, without styles and classes for hovering. Inline styles become attributes, because the
 * page's Content-Security-Policy forbids inline styles.
 */
function withoutStyles(svg: string): Html {
  return new Html(
    svg
      .replaceAll(/<style[^>]*>.*?<\/style>/gs, '')
      .replaceAll('fill="#000"', 'fill="none"') // clip paths, and lines in legends
      .replaceAll(/ (?:class|ecmeta_\w+|pointer-events)="[^"]*"/g, '')
      .replaceAll(/ style="([^"]*)"/g, (_, style: string) =>
        style.replaceAll(/\s*([\w-]+)\s*:\s*([^;]+);?/g, ' $1="$2"'),
      )
      .replace(/^<svg[^>]*?(viewBox="[^"]*")[^>]*>/, '$1>'),
  )
}
