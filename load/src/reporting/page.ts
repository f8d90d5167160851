import { stripVTControlCharacters } from 'node:util'
import type { Part } from './part.ts'
import { resultText } from './terminal.ts'

/** The report of a result, as in the terminal, as an HTML page. */
export function pageOf(part: Part): string {
  const { title, facts, result } = part
  const text = stripVTControlCharacters(resultText(part))
  const conditions = [`${result.date}: ${result.command}`, ...facts.map((fact) => fact.join(': '))]
  const body = escaped([text, conditions.join('\n')].join('\n\n'))
  return documentOf(`<h1>${escaped(title)}</h1>\n<pre>${body}</pre>`)
}

/** A page with a link to the page of each result. */
export function indexOf(parts: readonly Part[], addressOf: (part: Part) => string): string {
  const entries = parts.map((part) => {
    const { title, result } = part
    const text = `${result.date.slice(0, 16)}: ${result.command}`
    return `<h2><a href="${addressOf(part)}">${escaped(title)}</a></h2>\n<p>${escaped(text)}</p>`
  })
  return documentOf(`<h1>Latest results</h1>\n${entries.join('\n')}`)
}

const documentOf = (body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Onetrip: measurements</title>
<style>:root { color-scheme: light dark; font-family: system-ui, sans-serif }</style>
</head>
<body>
${body}
</body>
</html>
`

const escaped = (text: string) =>
  text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
