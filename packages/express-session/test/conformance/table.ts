import { fileURLToPath } from 'node:url'
import { markdownTable } from 'markdown-table'
import type { Count } from './case.ts'

/** What one case showed, by the name of the application. */
export interface Row {
  readonly group: string
  readonly name: string
  readonly counts: Map<string, Count | null>
}

/** The page with the table of all cases. */
export const pagePath = fileURLToPath(
  new URL('../../../../docs/measurements/session-stores.md', import.meta.url),
)

/** `✓`: always held; `3 of 20`: so often; `-`: not offered. */
const cell = (count: Count | null | undefined): string => {
  if (!count) return '-'
  return count.held === count.of ? '✓' : `${count.held} of ${count.of}`
}

/** Replaces the table in a page, which stands after a mark. */
export function withTable(page: string, rows: readonly Row[]): string {
  const names = [...(rows[0]?.counts.keys() ?? [])]
  const lines = Map.groupBy(rows, ({ group }) => group)
  const cells = [...lines].flatMap(([group, ofGroup]) => [
    [`**${group}**`, '', ...names.map(() => '')],
    ...ofGroup.map(({ name, counts }) => {
      const of = Math.max(...[...counts.values()].map((count) => count?.of ?? 0))
      return [name, `${of}`, ...names.map((contender) => cell(counts.get(contender)))]
    }),
  ])
  const align = ['l', 'r', ...names.map(() => 'c')]
  const table = markdownTable([['what should hold', 'trials', ...names], ...cells], { align })
  return page.replace(/(<!-- conformance -->\n\n)(?:\|.*\n)*/, (_, mark) => `${mark}${table}\n`)
}
