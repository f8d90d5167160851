import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import type { Chart, Section, Table } from '../experiment/section.ts'
import { Html, html } from './html.ts'
import type { Part } from './part.ts'

type Draw = (chart: Chart) => Html

/** Colours and fonts of the demo page. */
const THEME = join(repository, 'apps/demo/page/styles/theme.css')

/** One HTML page with all results. It has no script and loads nothing from the network. */
export async function pageOf(
  parts: readonly Part[],
  notices: readonly string[] = [],
): Promise<string> {
  // Loaded on demand, because ECharts has two megabytes and a measurement does not need it.
  const { drawChart } = await import('./draw/draw.ts')
  const [first] = parts
  const heading = first?.headline ? undefined : first?.claims[0]
  const common = (first?.facts ?? []).filter(([label, text]) =>
    parts.every(({ facts }) => facts.some(([other, same]) => other === label && same === text)),
  )
  return documentOf(
    html`<header>
${brand}
${headlineHtml(first)}
${notices.map((text) => html`<p class="notice">${text}</p>`)}
</header>
${parts.length > 1 ? contentsHtml(parts) : null}
<main>
${parts.map((part, index) => partHtml(part, `part-${index}`, { draw: drawChart, common, heading }))}
<section>
<h2>Method</h2>
${method}
${factsHtml(common)}
</section>
</main>`,
  )
}

const brand = html`<p class="brand">Onetrip <span>every web request, one trip to Redis</span></p>`

function headlineHtml(part: Part | undefined): Html {
  const { text, detail, tiles } = part?.headline ?? {
    ...{ text: part?.claims[0] ?? 'Results', detail: '', tiles: [] },
  }
  return html`<h1 class="${text.length > 60 ? 'sentence' : null}">${text}</h1>
${detail === '' ? null : html`<p class="note">${detail}</p>`}
${tiles.length === 0 ? null : html`<dl class="tiles">${tiles.map(({ value, label }) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`}`
}

const contentsHtml = (parts: readonly Part[]): Html =>
  html`<nav aria-label="Contents"><ol>${parts.map(
    ({ title, result: { date } }, index) =>
      html`<li><a href="#part-${index}">${title}</a> <span class="note">${date.slice(0, 10)}</span></li>`,
  )}</ol></nav>`

const factsHtml = (facts: Part['facts']): Html | null =>
  facts.length === 0
    ? null
    : html`<ul class="note">${facts.map(([label, text]) => html`<li>${label}: ${text}</li>`)}</ul>`

/** A page with a link to the page of each result. @param addressOf returns the address of a result's page. */
export function indexOf(parts: readonly Part[], addressOf: (part: Part) => string): string {
  return documentOf(
    html`<header>
${brand}
<h1>Latest results</h1>
</header>
<main>
${parts.map(
  (part) => html`<section>
<h2><a href="${addressOf(part)}">${part.title}</a></h2>
${part.claims.slice(0, 1).map((text) => html`<p>${text}</p>`)}
<p class="note">${part.result.date.slice(0, 16)}: <code>${part.result.command}</code></p>
</section>`,
)}
</main>`,
  )
}

function documentOf(content: Html): string {
  const style = [THEME, new URL('page.css', import.meta.url)]
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Onetrip: measurements</title>
<style>${new Html(style)}</style>
</head>
<body>
${content}
<footer><p>Created by <code>npm run load</code>. To create it from result files: <code>npm run load -- report FILE… --html report.html</code></p></footer>
</body>
</html>
`.text
}

function partHtml(
  part: Part,
  id: string,
  { draw, common, heading }: { draw: Draw; common: Part['facts']; heading: string | undefined },
): Html {
  const { title, claims, ending, notes, sections, facts, result } = part
  const json = Buffer.from(JSON.stringify(result)).toString('base64')
  return html`<section id="${id}">
<h2>${title}</h2>
${claims.map((text, index) => (text === heading ? null : html`<p class="${index === 0 ? 'lead' : null}">${text}</p>`))}
${ending.map((text) => html`<p class="notice">${text}</p>`)}
${sections.map((section) => sectionHtml(section, draw))}
${notes.map((text) => html`<p class="note">${text}</p>`)}
<h3>Command</h3>
<pre><code>${result.command}</code></pre>
<p class="note">Measured ${result.date}.</p>
${factsHtml(facts.filter((fact) => !common.includes(fact) && !common.some(([label]) => label === fact[0])))}
<p><a download="${result.experiment}.json" href="data:application/json;base64,${json}">Download all samples as JSON</a></p>
</section>`
}

function sectionHtml({ title, paragraphs = [], charts = [], tables }: Section, draw: Draw): Html {
  return html`<section>
<h3>${title}</h3>
${paragraphs.map((text) => html`<p>${text}</p>`)}
${charts.length === 0 ? null : html`<div class="charts">${charts.map((chart) => figureHtml(chart, draw))}</div>`}
${tables.map((table) => (charts.length === 0 ? tableHtml(table) : foldedHtml(table)))}
</section>`
}

function figureHtml(chart: Chart, draw: Draw): Html {
  const isSmall = chart.kind === 'lines' && chart.shared !== undefined
  const hint =
    chart.kind === 'bars' ? '; whiskers: range of the rounds; hatched: row with a mark' : ''
  return html`<figure class="${isSmall ? 'small' : null}"><figcaption>${chart.title}${hint}</figcaption>${draw(chart)}</figure>`
}

const foldedHtml = (table: Table): Html =>
  html`<details><summary>Table: ${table.caption}</summary>${tableHtml(table)}</details>`

function tableHtml({ caption, head, rows, texts }: Table): Html {
  const kind = (column: number) => (texts.includes(column) ? html` class="text"` : null)
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0">
<table>
<caption>${caption}</caption>
<thead><tr>${head.map((cell, column) => html`<th scope="col"${kind(column)}>${cell}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ([first = '', ...more]) => html`<tr><th scope="row">${first}</th>
${more.map((cell, column) => html`<td${kind(column + 1)}>${cell}</td>`)}</tr>
`,
)}</tbody>
</table>
</div>`
}

const method = html`<p>After a warm-up, each round runs every case once. Figures are medians of the rounds; a range is the lowest and the highest value. A ratio compares two runs of the same round, so that slow drifts of the machine cancel out. Its 95 % interval is computed from the rounds. CPU time is that of whole processes.</p>
<p>Generator, API and Redis share one machine, so ratios and CPU time carry over to other machines better than rates. A relay simulates a distant Redis. The source articles used other machines and older versions. Details are in <code>docs/method.md</code>.</p>`
