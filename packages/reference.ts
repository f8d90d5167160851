/** Writes the API reference of a compiled package: what its entry points export, from the declarations of tsc. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'

/** An export: its docstring, and its declarations (several if it is overloaded or merged). */
interface Export {
  docs: string
  code: string
}

/** Returns a page in Markdown. `entries` are the package's `exports`, with files in `dist`. */
export function reference(dist: string, name: string, entries: Record<string, string>): string {
  const sections = Object.entries(entries).map(([entry, file]) => {
    const exports = [...exportsOf(resolve(dist, file.replace(/\.js$/, '.d.ts')))]
    const parts = exports
      .toSorted(([a], [b]) => a.localeCompare(b, 'en', { sensitivity: 'base' }))
      .map(([exported, { docs, code }]) =>
        [`### ${exported}`, docs, `\`\`\`ts\n${code}\n\`\`\``].filter(Boolean).join('\n\n'),
      )
    return [`## ${join(name, entry)}`, ...parts].join('\n\n')
  })
  const head = `# API of ${name}\n\nGenerated from the sources. [README.md](README.md) shows how to use it.`
  return `${[head, ...sections].join('\n\n')}\n`
}

/** The exports of a declaration file, with those that it re-exports. */
function exportsOf(file: string): Map<string, Export> {
  const text = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, text)
  const found = new Map<string, Export>()
  /** Of a statement, from the comment that ends where it starts. */
  const docsBefore = (start: number) => {
    const comment = comments.findLast(({ end }) => end <= start)
    if (!comment?.value.startsWith('*')) return ''
    return text.slice(comment.end, start).trim() === '' ? comment.value : ''
  }
  const add = (name: string, start: number, end: number) => {
    const { docs = '', code } = found.get(name) ?? {}
    found.set(name, {
      docs: docs || prose(docsBefore(start)),
      code: [code, text.slice(start, end)].filter(Boolean).join('\n'),
    })
  }
  for (const statement of program.body) {
    if (statement.type !== 'ExportNamedDeclaration' && statement.type !== 'ExportAllDeclaration') {
      continue
    }
    const { start, end, source } = statement
    const target = source?.value.startsWith('.')
      ? exportsOf(resolve(file, '..', source.value.replace(/\.[jt]s$/, '.d.ts')))
      : undefined
    if (statement.type === 'ExportAllDeclaration') {
      for (const [name, one] of target ?? []) found.set(name, one)
      continue
    }
    const { declaration, specifiers } = statement
    for (const { local, exported } of specifiers) {
      if (!('name' in local && 'name' in exported)) continue
      const from = target?.get(local.name)
      if (from) found.set(exported.name, from)
      else add(exported.name, start, end)
    }
    if (!declaration) continue
    const named = 'declarations' in declaration ? declaration.declarations : [declaration]
    for (const one of named) {
      if ('id' in one && one.id && 'name' in one.id) add(one.id.name, start, end)
    }
  }
  return found
}

/** The text of a docstring, as Markdown. */
function prose(comment: string): string {
  const lines = comment.split('\n').map((line) => line.replace(/^\s*\*+ ?/, '').trimEnd())
  return lines
    .join('\n')
    .replace(/^@(\w+) /gm, (_, tag) => `- *${tag}* `)
    .trim()
}
