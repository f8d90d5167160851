import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Problem } from '@onetrip/stack/problem.ts'
import { readHttpResult } from '../http/read-result.ts'
import type { Part } from './model.ts'
import { experimentPart } from './parts/experiment.ts'
import { httpPart } from './parts/http.ts'
import { latencyPart } from './parts/latency.ts'

/** A result as it was saved, and what to call it. */
export interface NamedDocument {
  /** Of the file. */
  readonly name: string
  readonly document: unknown
}

/** Several results in one document, in the order in which they were measured. */
export interface AllResult {
  format: 'onetrip-load-all/1'
  /** When it began, in ISO 8601. */
  date: string
  /** The command line. */
  command: string
  /** Whether it was ended early, by whatever: then it has the parts that were begun by then. */
  interrupted: boolean
  /** What failed, and why; `kept`: the rounds are there that were complete. */
  failures: { part: string; message: string; kept?: boolean }[]
  parts: { readonly format: string }[]
}

// What each reader relies on is what the types of its format promise; a file that breaks the promise is
// told from an error of ours by `partsOf`.
const readers = new Map<string, (document: never, name: string) => Part>([
  ['onetrip-load-http/2', (document, name) => httpPart(readHttpResult(document, name))],
  ['onetrip-load-http/3', (document, name) => httpPart(readHttpResult(document, name))],
  ['onetrip-load-latency/1', latencyPart],
  ['onetrip-load-redis/1', experimentPart],
])

export const ALL = 'onetrip-load-all/1'

/** More than any of our files is, and less than what makes a page that no browser shows. */
const MOST_BYTES = 64 * 2 ** 20

/** @throws Problem when there is no such file, or no JSON in it. */
export async function readDocument(path: string): Promise<NamedDocument> {
  const unreadable = (why: string) => new Problem(`${path} cannot be read: ${why}.`)
  const problem = (error: unknown) =>
    unreadable(error instanceof Error ? error.message : `${error}`)
  const found = await stat(path).catch((error: unknown) => Promise.reject(problem(error)))
  if (!found.isFile()) throw unreadable('it is no file')
  if (found.size > MOST_BYTES) throw unreadable(`it has ${found.size} bytes, too many for a report`)
  const text = await readFile(path, 'utf8').catch((error: unknown) =>
    Promise.reject(problem(error)),
  )
  try {
    return { name: basename(path), document: JSON.parse(text) }
  } catch (error) {
    throw unreadable(`it is no JSON (${(error as Error).message.replaceAll(/\s+/g, ' ')})`)
  }
}

/**
 * The parts of a report that a document gives: one, or several where it holds several results.
 *
 * @throws Problem when it is in none of our formats, or is not what its format promises.
 */
export function partsOf({ name, document }: NamedDocument): Part[] {
  const format = formatOf(document)
  if (format === ALL) {
    const { parts } = document as AllResult
    if (!Array.isArray(parts) || parts.length === 0) throw new Problem(`${name} has no parts.`)
    return parts.flatMap((part, index) =>
      partsOf({ name: `${name}, part ${index + 1}`, document: part }),
    )
  }
  const reader = format === undefined ? undefined : readers.get(format)
  if (!reader) {
    const known = [...readers.keys(), ALL].join(', ')
    throw new Problem(
      format === undefined
        ? `${name} is no result of npm run load: it has no "format" (${known}).`
        : `${name} is in the format ${JSON.stringify(format)}, which is none of ${known}.`,
    )
  }
  try {
    return [reader(document as never, name)]
  } catch (error) {
    if (error instanceof Problem) throw error
    const what = error instanceof Error ? error.message : String(error)
    throw new Problem(`${name} says that it is ${format}, but something in it is not: ${what}.`)
  }
}

/**
 * The results of several documents in one, as `load all` writes them.
 *
 * @param command what joined them; each part has its own.
 * @throws Problem when one is in none of our formats.
 */
export function joined(documents: readonly NamedDocument[], command: string): AllResult {
  for (const document of documents) partsOf(document)
  const all = documents.map(({ document }) => document as AllResult)
  const parts = all.flatMap((one) => (one.format === ALL ? one.parts : [one]))
  const dates = parts.map((part) => String((part as { date?: string }).date ?? ''))
  return {
    format: ALL,
    date: dates.toSorted()[0] ?? '',
    command,
    interrupted: all.some((one) => one.format === ALL && one.interrupted),
    failures: all.flatMap((one) => (one.format === ALL ? one.failures : [])),
    parts,
  }
}

/** What a document says of itself that readers of its parts have to know. */
export function noticesOf({ document }: NamedDocument): string[] {
  if (formatOf(document) !== ALL) return []
  const { interrupted, failures = [] } = document as AllResult
  return [
    ...(interrupted ? ['This run was interrupted: it has the parts that were complete.'] : []),
    ...failures.map(
      ({ part, message, kept }) =>
        `${kept ? 'Not measured to the end' : 'Not measured'}: ${part} (${message}).`,
    ),
  ]
}

function formatOf(document: unknown): string | undefined {
  if (typeof document !== 'object' || document === null || !('format' in document)) return undefined
  return typeof document.format === 'string' ? document.format : undefined
}
