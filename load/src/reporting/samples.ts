import type { Table } from '../experiment/section.ts'

/**
 * Objects as a table: a column for each field of any of them, those of objects in them as `latency.p50`.
 * Of lists of objects only their length is told: they are in the file.
 */
export function sampleTable(caption: string, samples: readonly object[]): Table {
  const rows = samples.map((sample) => flatten(sample))
  const head = [...new Set(rows.flatMap((row) => [...row.keys()]))]
  const texts = head.flatMap((name, index) =>
    rows.some((row) => typeof row.get(name) === 'string') ? index : [],
  )
  return {
    caption: `${caption} (${rows.length})`,
    head,
    rows: rows.map((row) => head.map((name) => String(row.get(name) ?? ''))),
    texts,
  }
}

function flatten(object: object, prefix = '', into = new Map<string, unknown>()) {
  for (const [name, value] of Object.entries(object)) {
    const path = `${prefix}${name}`
    if (Array.isArray(value)) into.set(path, listText(value))
    else if (typeof value === 'object' && value !== null) {
      if (Object.keys(value).length === 0) into.set(path, '')
      else flatten(value, `${path}.`, into)
    } else into.set(path, value)
  }
  return into
}

function listText(list: readonly unknown[]): string {
  const simple = list.every((each) => typeof each !== 'object' || each === null)
  return simple ? list.join(', ') : `${list.length} in the file`
}
