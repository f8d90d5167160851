import type { Section, Table } from '../experiment/section.ts'
import { Html, html } from './html.ts'
import type { Part } from './part.ts'

const style = new Html(`:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
.table { overflow-x: auto }
table { border-collapse: collapse }
caption { text-align: left }
th, td { border-bottom: 1px solid #8888; padding: 0.2rem 0.8rem 0.2rem 0; text-align: right }
.text { text-align: left }`)

/** The report of a result as one HTML page, which has no script and loads nothing. */
export function pageOf({ title, claims, ending, notes, sections, facts, result }: Part): string {
  return documentOf(html`<h1>${title}</h1>
${[...ending, ...claims].map(paragraph)}
${sections.map(sectionHtml)}
${notes.map(paragraph)}
<h2>Conditions</h2>
<p>${result.date}: <code>${result.command}</code></p>
<ul>${facts.map(([label, text]) => html`<li>${label}: ${text}</li>`)}</ul>`)
}

/** A page with a link to the page of each result. */
export function indexOf(parts: readonly Part[], addressOf: (part: Part) => string): string {
  return documentOf(html`<h1>Latest results</h1>
${parts.map(
  (part) => html`<h2><a href="${addressOf(part)}">${part.title}</a></h2>
${part.claims.slice(0, 1).map(paragraph)}
<p>${part.result.date.slice(0, 16)}: <code>${part.result.command}</code></p>`,
)}`)
}

const documentOf = (content: Html) =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Onetrip: measurements</title>
<style>${style}</style>
</head>
<body>
${content}
</body>
</html>
`.text

const paragraph = (text: string) => html`<p>${text}</p>`

const sectionHtml = ({ title, paragraphs = [], tables }: Section) => html`<h2>${title}</h2>
${paragraphs.map(paragraph)}
${tables.map(tableHtml)}`

function tableHtml({ caption, head, rows, texts }: Table) {
  const kind = (column: number) => (texts.includes(column) ? 'text' : '')
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0">
<table>
<caption>${caption}</caption>
<thead><tr>${head.map((cell, at) => html`<th scope="col" class="${kind(at)}">${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell, at) => html`<td class="${kind(at)}">${cell}</td>`)}</tr>`)}</tbody>
</table>
</div>`
}
