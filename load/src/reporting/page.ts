import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Chart, Section, Table } from '../experiment/section.ts'
import type { SavedResult } from './files.ts'
import { escapeJson, Html, html } from './html.ts'
import { type Part, partOf } from './part.ts'
import { sampleTable } from './samples.ts'

const asset = (name: string) => readFileSync(new URL(`page/${name}`, import.meta.url), 'utf8')

type Draw = (chart: Chart) => Html

/**
 * One page with everything that the results have: style, script and data are in it, and it may load nothing
 * from anywhere.
 */
export async function pageOf(
  results: readonly SavedResult[],
  notices: readonly string[] = [],
): Promise<string> {
  const parts = results.map(({ experiment, result }) => partOf(experiment, result))
  // A library of two megabytes, which no measurement has to wait for.
  const { drawChart: draw } = await import('./draw/draw.ts')
  const [style, script] = [asset('page.css'), asset('page.js')]
  const policy = `default-src 'none'; style-src '${hash(style)}'; script-src '${hash(script)}'; base-uri 'none'; form-action 'none'`
  const [first] = parts
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Onetrip: what was measured</title>
<style>${new Html(style)}</style>
<script>${new Html(script)}</script>
</head>
<body>
<header>
<p class="product">Onetrip · every web request, one trip to Redis</p>
${first ? hero(first) : null}
${notices.map((text) => html`<p class="notice">${text}</p>`)}
</header>
${parts.length > 1 ? contents(parts) : null}
<main>
${parts.map((_, index) => partHtml(parts, index, draw))}
${method()}
</main>
<footer><p>Made by <code>npm run load</code>; from saved files: <code>npm run load -- report FILE… --html report.html</code></p></footer>
</body>
</html>
`.text
}

const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`

function hero({ title, claims, provenance }: Part): Html {
  const [sentence = title, ...more] = claims
  return html`<h1>${sentence}</h1>
${more.map((text) => html`<p class="lead">${text}</p>`)}
<p class="where">${provenance.date.slice(0, 10)} · ${provenance.facts[0]?.[1] ?? ''}</p>`
}

function contents(parts: readonly Part[]): Html {
  const items = parts.map(
    (part, index) => html`<li><a href="#part-${index}">${titleIn(parts, part)}</a></li>`,
  )
  return html`<nav aria-label="Contents"><ol>${items}</ol></nav>`
}

/** A part's title; where several have the same, with what tells them apart. */
function titleIn(parts: readonly Part[], { title, name, provenance }: Part): string {
  const twins = parts.filter((part) => part.title === title)
  return twins.length === 1 ? title : `${title} (${name}, ${provenance.date.slice(0, 16)})`
}

function partHtml(parts: readonly Part[], index: number, draw: Draw): Html {
  const part = parts[index] as Part
  const { claims, ending, notes, sections } = part
  // The first part's claims are the page's.
  const sentences = index === 0 ? [] : claims
  return html`<section class="part" id="part-${index}">
<h2>${titleIn(parts, part)}</h2>
${sentences.map((text) => html`<p class="headline">${text}</p>`)}
${ending.map((text) => html`<p class="notice">${text}</p>`)}
${sections.map((section, number) => sectionHtml(section, `${index}-${number}`, draw))}
${notes.map((text) => html`<p class="note">${text}</p>`)}
${provenanceHtml(part)}
${samplesHtml(part, index)}
</section>`
}

function sectionHtml(section: Section, id: string, draw: Draw): Html {
  const { title, paragraphs = [], charts = [], tables } = section
  return html`<section>
<h3>${title}</h3>
${paragraphs.map((text) => html`<p>${text}</p>`)}
${charts.map((chart) => html`<figure><figcaption>${chart.title}</figcaption>${draw(chart)}</figure>`)}
${tables.map((table, number) => tableHtml(table, `table-${id}-${number}`))}
</section>`
}

function tableHtml({ caption, head, rows, texts }: Table, id: string): Html {
  const kind = (column: number) => (texts.includes(column) ? html` class="text"` : null)
  return html`<div class="caption"><p id="${id}-caption">${caption || 'Table'}</p><button type="button" data-copy="${id}" hidden>Copy</button></div>
<div class="table" role="region" aria-labelledby="${id}-caption" tabindex="0">
<table id="${id}" aria-labelledby="${id}-caption">
<thead><tr>${head.map((cell, column) => html`<th scope="col"${kind(column)}>${breakable(cell)}</th>`)}</tr></thead>
<tbody>
${rows.map(
  (row) =>
    html`<tr>${row.map((cell, column) =>
      column === 0
        ? html`<th scope="row">${withMarks(cell)}</th>`
        : html`<td${kind(column)}>${withRange(cell)}</td>`,
    )}</tr>
`,
)}</tbody>
</table>
</div>`
}

/** A figure with its range, which is not broken and less prominent. */
function withRange(cell: string): Html {
  const [, figure, range] = /^(\S+) (\([^()]*\)(?: \*)?)$/.exec(cell) ?? []
  if (figure === undefined || range === undefined) return html`${withMarks(cell)}`
  return html`${figure} <span class="range">${range}</span>`
}

/** Marks stay beside what they mark. */
const withMarks = (cell: string) => cell.replaceAll(/ (?=[*†‡!]+( |$))/g, '\u00a0')

/** The path of a field may be broken at its dots. */
function breakable(text: string): Html {
  const [first = '', ...rest] = text.split('.')
  const isPath = /^[a-z]\w*(\.[a-z]\w*)+$/i.test(text)
  if (!isPath) return html`${text}`
  return html`${first}${rest.map((part) => html`<wbr>.${part}`)}`
}

function provenanceHtml({ provenance }: Part): Html {
  const facts = [
    ['Date', provenance.date] as const,
    ...provenance.facts.map(([label, text]) => [label, text] as const),
  ]
  return html`<section>
<h3>Provenance</h3>
<p>To do it again:</p>
<pre><code>${provenance.command}</code></pre>
<dl>${facts.map(([label, text]) => html`<dt>${label}</dt><dd>${text}</dd>`)}</dl>
</section>`
}

function samplesHtml({ result, name }: Part, index: number): Html {
  // Histograms are no text for readers; they are in the file.
  const samples = result.samples.map(({ histograms, ...sample }) => sample)
  const table = sampleTable(`Every run of ${name}`, samples)
  return html`<section class="samples">
<h3>Every sample</h3>
<p><button type="button" data-download="document-${index}" data-name="${name}.json" hidden>Save as JSON</button></p>
<details><summary>${table.caption}</summary>
${tableHtml(table, `samples-${index}`)}
</details>
<script type="application/json" id="document-${index}">${escapeJson(result)}</script>
</section>`
}

function method(): Html {
  return html`<section class="part" id="method">
<h2>Method and limits</h2>
<ul>
<li>Variants take turns, round by round, after a warm-up. A figure is the median of the rounds, the range beside it their lowest and highest. A ratio compares two runs of the same round, so that slow drifts of the machine cancel out; its 95 % interval is across the rounds.</li>
<li>CPU time is that of whole processes, from the system’s counters. Commands and connections are counted by Redis, round trips by the API.</li>
<li>A row is marked when the generator was at its limit or something else had much of the CPU; no ratio is claimed from it in a headline.</li>
<li>Generator, API and Redis share one machine: ratios and CPU per request carry over to others better than rates do. A distant Redis is simulated by a relay. The documents measured on other machines, with older versions.</li>
</ul>
<p>More is in <code>docs/method.md</code>; what the documents’ experiments show in <code>docs/redis-experiments.md</code> and <code>docs/store-benchmark.md</code>.</p>
</section>`
}
