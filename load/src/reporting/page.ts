import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Chart, Section, Table } from '../experiment/section.ts'
import { Html, html } from './html.ts'
import type { Part } from './part.ts'

type Draw = (chart: Chart) => Html

/** One page with everything that the results have. It has no script, and loads nothing from anywhere. */
export async function pageOf(
  parts: readonly Part[],
  notices: readonly string[] = [],
): Promise<string> {
  // A library of two megabytes, which no measurement has to wait for.
  const { drawChart } = await import('./draw/draw.ts')
  return documentOf(
    html`<header>
<p class="note">Onetrip · every web request, one trip to Redis</p>
<h1>${parts[0]?.claims[0] ?? 'What was measured'}</h1>
${notices.map((text) => html`<p class="notice">${text}</p>`)}
</header>
<nav aria-label="Contents"><ol>${parts.map(
      ({ title, result: { date } }, index) =>
        html`<li><a href="#part-${index}">${title}</a> <span class="note">${date.slice(0, 16)}</span></li>`,
    )}</ol></nav>
<main>
${parts.map((part, index) => partHtml(part, `part-${index}`, drawChart))}
${method}
</main>`,
  )
}

/** A page that links to one page for each result. `addressOf` gives the address of a result's page. */
export function indexOf(parts: readonly Part[], addressOf: (part: Part) => string): string {
  return documentOf(
    html`<header>
<p class="note">Onetrip · every web request, one trip to Redis</p>
<h1>What was measured</h1>
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
${content}
<footer><p>Made by <code>npm run load</code>; from saved files: <code>npm run load -- report FILE… --html report.html</code></p></footer>
</body>
</html>
`.text
}

function partHtml(part: Part, id: string, draw: Draw): Html {
  const { title, claims, ending, notes, sections, facts, result } = part
  const json = Buffer.from(JSON.stringify(result)).toString('base64')
  return html`<section id="${id}">
<h2>${title}</h2>
${claims.map((text, index) => html`<p class="${index === 0 ? 'lead' : null}">${text}</p>`)}
${ending.map((text) => html`<p class="notice">${text}</p>`)}
${sections.map((section) => sectionHtml(section, draw))}
${notes.map((text) => html`<p class="note">${text}</p>`)}
<h3>Provenance</h3>
<p>To do it again:</p>
<pre><code>${result.command}</code></pre>
<ul class="note"><li>Date: ${result.date}</li>
${facts.map(([label, text]) => html`<li>${label}: ${text}</li>`)}</ul>
<p><a download="${result.experiment}.json" href="data:application/json;base64,${json}">Every sample, as JSON</a></p>
</section>`
}

function sectionHtml({ title, paragraphs = [], charts = [], tables }: Section, draw: Draw): Html {
  return html`<section>
<h3>${title}</h3>
${paragraphs.map((text) => html`<p>${text}</p>`)}
${charts.map((chart) => html`<figure><figcaption>${chart.title}</figcaption>${draw(chart)}</figure>`)}
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
  ([first = '', ...more]) => html`<tr><th scope="row">${first}</th>
${more.map((cell, column) => html`<td${kind(column + 1)}>${cell}</td>`)}</tr>
`,
)}</tbody>
</table>
</div>`
}

const method = html`<section>
<h2>Method and limits</h2>
<p>Cases take turns, round by round, after a warm-up. A figure is the median of the rounds, the range beside it their lowest and highest. A ratio compares two runs of the same round, so that slow drifts of the machine cancel out; its 95 % interval is across the rounds. CPU time is that of whole processes.</p>
<p>Generator, API and Redis share one machine: ratios and CPU time carry over to others better than rates do. A distant Redis is simulated by a relay. The documents measured on other machines, with older versions. More is in <code>docs/method.md</code>.</p>
</section>`
