import { Rows } from '../rounds/rows.ts'
import type { Table } from '../rounds/section.ts'
import { metricOf } from '../rounds/shape.ts'
import { barChart, escaped } from './bar-chart.ts'
import type { SavedResult } from './files.ts'
import { partOf } from './part.ts'

/** The report of a result as an HTML page: a bar chart of its first metric, all tables, the conditions. */
export function pageOf(saved: Pick<SavedResult, 'experiment' | 'result'>): string {
  const { title, ending, conclusion, notes, sections, facts, result } = partOf(saved)
  const body = [
    `<h1>${escaped(title)}</h1>`,
    `<p>${escaped(`${result.date.slice(0, 16).replace('T', ' ')} UTC: ${result.command}`)}</p>`,
    ...[...ending, conclusion ?? []].flat().map(paragraph),
    chartOf(saved),
    ...sections.flatMap(({ title, table }) => [`<h2>${escaped(title)}</h2>`, tableHtml(table)]),
    ...notes.map(paragraph),
    `<h2>Conditions</h2>\n<ul>${facts.map((fact) => `<li>${escaped(fact.join(': '))}</li>`).join('\n')}</ul>`,
  ]
  return documentOf(body.filter((part) => part !== '').join('\n'))
}

function chartOf({ experiment, result }: Pick<SavedResult, 'experiment' | 'result'>): string {
  const rows = Rows.of(experiment, result.samples)
  const name = experiment.progress.find((one) => rows.all.some((row) => row.median(one) !== null))
  const chart = name === undefined ? null : barChart(rows, [metricOf(experiment, name)])
  return chart ? `<figure><figcaption>${chart.title}</figcaption>\n${chart.svg}</figure>` : ''
}

function tableHtml({ caption, head, rows, texts }: Table): string {
  const line = (tag: 'th' | 'td', cells: readonly string[]) => {
    const all = cells.map((cell, column) => {
      const isText = texts.includes(column) ? ' class="text"' : ''
      return `<${tag}${isText}>${escaped(cell)}</${tag}>`
    })
    return `<tr>${all.join('')}</tr>`
  }
  const lines = [line('th', head), ...rows.map((row) => line('td', row))]
  return `<div tabindex="0"><table><caption>${escaped(caption)}</caption>\n${lines.join('\n')}</table></div>`
}

const paragraph = (text: string) => `<p>${escaped(text)}</p>`

// A wide table scrolls, so that the page fits into a narrow window.
const documentOf = (body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Onetrip: measurements</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.4 system-ui, sans-serif }
body { max-width: 75rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
figure { margin: 1rem 0; max-width: 34rem }
figcaption { font-weight: bold }
svg { width: 100%; font-size: 12px; fill: currentColor }
div { overflow-x: auto; overflow-wrap: normal }
table { border-collapse: collapse; font-size: 0.875rem }
caption { text-align: left; padding-bottom: 0.5rem }
th, td { padding: 0.25rem 0.5rem; text-align: right; border-bottom: 1px solid #8886 }
td { white-space: nowrap }
.text { text-align: left }
</style>
</head>
<body>
${body}
</body>
</html>
`
