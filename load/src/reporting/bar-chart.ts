import type { Rows } from '../experiment/rows.ts'
import type { Metric } from '../experiment/shape.ts'
import { marked, metricText } from './columns.ts'

// The drawing has the width of a phone, so that its text is readable there. Colors suit light and dark pages.

const WIDTH = 360
const [LINE, BAR] = [36, 12]
const MAX_BARS = 24
const MAX_NAME = 52

/** An SVG image with a bar for each row, the median of a metric; null without values. */
export function barChart(rows: Rows, metric: Metric): { title: string; svg: string } | null {
  const bars = rows.all.flatMap((row) => {
    const value = row.median(metric.name)
    return value === null ? [] : [{ name: marked(row, rows.nameOf(row)), value }]
  })
  if (bars.length === 0) return null
  const shown = bars.slice(0, MAX_BARS)
  const most = Math.max(...shown.map(({ value }) => value)) || 1
  const part = shown.length < bars.length ? `; ${shown.length} of ${bars.length} cases` : ''
  const title = escaped(`${metric.label}, median of the rounds${part}`)
  const lines = shown.map(({ name, value }, index) => {
    const width = Math.max(1, (value / most) * WIDTH).toFixed(1)
    const [text, top] = [metricText(metric, value), index * LINE]
    const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name
    return [
      `<text x="0" y="${top + 14}">${escaped(short)}</text>`,
      `<text x="${WIDTH}" y="${top + 14}" text-anchor="end">${text}</text>`,
      `<rect x="0" y="${top + 19}" width="${width}" height="${BAR}" fill="#3f86dd"/>`,
    ].join('')
  })
  const size = `0 0 ${WIDTH} ${shown.length * LINE}`
  const look = 'font-family="system-ui, sans-serif" font-size="12" fill="#787f88"'
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${size}" role="img" aria-label="${title}" ${look}>`
  return { title, svg: [svg, ...lines, '</svg>'].join('\n') }
}

/** Escapes text for HTML and SVG. */
export const escaped = (text: string) =>
  text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
