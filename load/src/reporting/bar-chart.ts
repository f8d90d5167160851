import type { Rows } from '../rounds/rows.ts'
import type { Metric } from '../rounds/shape.ts'
import { marked, metricText } from './columns.ts'

// The drawing has the width of a phone, so that its text is readable there. Colors suit light and dark pages.

const WIDTH = 360
const [LINE, BAR] = [36, 12]
const GAP = 40
const MAX_BARS = 24
const MAX_NAME = 52

/**
 * An SVG image with a bar for each row and metric: its median. Null without values.
 *
 * @param isLogarithmic whether a bar that is longer by a tenth of the width stands for a constant factor.
 */
export function barChart(
  rows: Rows,
  metrics: readonly Metric[],
  isLogarithmic = false,
): { title: string; svg: string } | null {
  const bars = rows.all.flatMap((row) => {
    const values = metrics.map(({ name }) => row.median(name))
    return values.some((value) => value !== null)
      ? [{ name: marked(row, rows.nameOf(row)), values }]
      : []
  })
  if (bars.length === 0) return null
  const shown = bars.slice(0, MAX_BARS)
  const part = shown.length < bars.length ? `; ${shown.length} of ${bars.length} cases` : ''
  const scale = isLogarithmic ? ', on a logarithmic scale' : ''
  const labels = metrics.map(({ label }) => label).join(' and ')
  const title = escaped(`${labels}, median of the rounds${scale}${part}`)
  const head = LINE / 2
  const columns = metrics.map((metric, column) => {
    const left = column * (WIDTH + GAP)
    const values = shown.flatMap((bar) => bar.values[column] ?? [])
    const [least, most] = [Math.min(...values) / 2, Math.max(...values) || 1]
    const share = (value: number) =>
      isLogarithmic ? Math.log(value / least) / Math.log(most / least) : value / most
    const lines = shown.map(({ name, values }, index) => {
      const value = values[column] ?? null
      const [text, top] = [metricText(metric, value), head + index * LINE]
      const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name
      const width = Math.max(1, share(value ?? 0) * WIDTH).toFixed(1)
      return [
        `<text x="${left}" y="${top + 14}">${escaped(short)}</text>`,
        `<text x="${left + WIDTH}" y="${top + 14}" text-anchor="end">${text}</text>`,
        ...(value === null
          ? []
          : [
              `<rect x="${left}" y="${top + 19}" width="${width}" height="${BAR}" fill="#3f86dd"/>`,
            ]),
      ].join('')
    })
    const title = `<text x="${left}" y="14" font-weight="bold">${escaped(metric.label)}</text>`
    return [title, ...lines].join('\n')
  })
  const size = `0 0 ${metrics.length * (WIDTH + GAP) - GAP} ${head + shown.length * LINE}`
  const look = 'font-family="system-ui, sans-serif" font-size="12" fill="#787f88"'
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${size}" role="img" aria-label="${title}" ${look}>`
  return { title, svg: [svg, ...columns, '</svg>'].join('\n') }
}

/** Escapes text for HTML and SVG. */
export const escaped = (text: string) =>
  text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
