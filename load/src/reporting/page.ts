import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Chart, Section, Table } from '../experiment/section.ts'
import type { SavedResult } from './files.ts'
import { Html, html } from './html.ts'
import { type Part, partOf } from './part.ts'

type Draw = (chart: Chart, id: string) => Html

/** A part, and what identifies it in the page. */
interface Entry {
  part: Part
  id: string
  title: string
}

/** One page with everything that the results have. It has no script, and loads nothing from anywhere. */
export async function pageOf(
  results: readonly SavedResult[],
  notices: readonly string[] = [],
): Promise<string> {
  const parts = results.map(({ experiment, result }) => partOf(experiment, result))
  const entries = parts.map((part, index): Entry => {
    const isOnly = parts.filter(({ title }) => title === part.title).length === 1
    const title = isOnly ? part.title : `${part.title} (${part.result.date.slice(0, 16)})`
    return { part, id: `part-${index}`, title }
  })
  // A library of two megabytes, which no measurement has to wait for.
  const { drawChart: draw } = await import('./draw/draw.ts')
  const style = readFileSync(new URL('page.css', import.meta.url), 'utf8')
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Onetrip: what was measured</title>
<style>${new Html(style)}</style>
</head>
<body>
<header>
<p class="product">Onetrip · every web request, one trip to Redis</p>
${parts.slice(0, 1).map(headline)}
${notices.map((text) => html`<p class="notice">${text}</p>`)}
</header>
${entries.length > 1 ? contents(entries) : null}
<main>
${entries.map((entry, index) => partHtml(entry, index, draw))}
${method}
</main>
<footer><p>Made by <code>npm run load</code>; from saved files: <code>npm run load -- report FILE… --html report.html</code></p></footer>
</body>
</html>
`.text
}

function headline({
  title,
  claims: [first = title, ...more],
  facts,
  result: { date },
}: Part): Html {
  return html`<h1>${first}</h1>
${more.map((text) => html`<p class="lead">${text}</p>`)}
<p class="where">${date.slice(0, 10)} · ${facts[0]?.[1] ?? ''}</p>`
}

const contents = (entries: readonly Entry[]) =>
  html`<nav aria-label="Contents"><ol>${entries.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ol></nav>`

function partHtml({ part, id, title }: Entry, index: number, draw: Draw): Html {
  const { claims, ending, notes, sections, facts, result } = part
  const json = Buffer.from(JSON.stringify(result)).toString('base64')
  // The first part's claims are the page's.
  return html`<section class="part" id="${id}">
<h2>${title}</h2>
${claims.map((text) => (index === 0 ? null : html`<p class="headline">${text}</p>`))}
${ending.map((text) => html`<p class="notice">${text}</p>`)}
${sections.map((section, number) => sectionHtml(section, `${id}-${number}`, draw))}
${notes.map((text) => html`<p class="note">${text}</p>`)}
<h3>Provenance</h3>
<p>To do it again:</p>
<pre><code>${result.command}</code></pre>
<dl><dt>Date</dt><dd>${result.date}</dd>
${facts.map(([label, text]) => html`<dt>${label}</dt><dd>${text}</dd>`)}</dl>
<p><a download="${result.experiment}.json" href="data:application/json;base64,${json}">Every sample, as JSON</a></p>
</section>`
}

function sectionHtml(
  { title, paragraphs = [], charts = [], tables }: Section,
  id: string,
  draw: Draw,
) {
  return html`<section>
<h3>${title}</h3>
${paragraphs.map((text) => html`<p>${text}</p>`)}
${charts.map((chart, number) => html`<figure><figcaption>${chart.title}</figcaption>${draw(chart, `${id}-${number}`)}</figure>`)}
${tables.map(tableHtml)}
</section>`
}

function tableHtml({ caption, head, rows, texts }: Table): Html {
  const kind = (column: number) => (texts.includes(column) ? html` class="text"` : null)
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0">
<table>
<caption>${caption}</caption>
<thead><tr>${head.map((cell, column) => html`<th scope="col"${kind(column)}>${cell}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ([first = '', ...more]) => html`<tr><th scope="row">${withMarks(first)}</th>
${more.map((cell, column) => html`<td${kind(column + 1)}>${withRange(cell)}</td>`)}</tr>
`,
)}</tbody>
</table>
</div>`
}

/** A figure with its range, which is not broken and less prominent. */
function withRange(cell: string): Html {
  const [, figure, range] = /^(\S+) (\([^()]*\))$/.exec(cell) ?? []
  return figure && range ? html`${figure} <span class="range">${range}</span>` : html`${cell}`
}

/** Marks stay beside what they mark. */
const withMarks = (cell: string) => cell.replaceAll(/ (?=[*†‡!]+( |$))/g, '\u00a0')

const method = html`<section class="part" id="method">
<h2>Method and limits</h2>
<ul>
<li>Cases take turns, round by round, after a warm-up. A figure is the median of the rounds, the range beside it their lowest and highest. A ratio compares two runs of the same round, so that slow drifts of the machine cancel out; its 95 % interval is across the rounds.</li>
<li>CPU time is that of whole processes, from the system’s counters. Commands and connections are counted by Redis, round trips by the API.</li>
<li>A row is marked when the generator was at its limit or something else had much of the CPU; no ratio is claimed from it in a headline.</li>
<li>Generator, API and Redis share one machine: ratios and CPU per request carry over to others better than rates do. A distant Redis is simulated by a relay. The documents measured on other machines, with older versions.</li>
</ul>
<p>More is in <code>docs/method.md</code>.</p>
</section>`
