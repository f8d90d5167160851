import { endingText } from '../../experiment/rounds.ts'
import { DISTURBED } from '../../measure/machine-cpu.ts'
import type { DocumentFigure } from '../../redis/experiment.ts'
import type { ExperimentResult } from '../../redis/result.ts'
import { percent, type TextTable } from '../../table.ts'
import type { Part, ReportTable, Section } from '../model.ts'
import { documentsTables } from './documents.ts'
import { provenanceOf, redisText } from './provenance.ts'
import { sampleTable } from './samples.ts'

/** Files of before 10:20 on 2026-11-21 lack what is optional here. */
type Stored = Omit<ExperimentResult, 'summary' | 'tables' | 'conclusions' | 'network'> &
  Partial<Pick<ExperimentResult, 'summary' | 'tables' | 'conclusions' | 'network'>> &
  Readonly<Record<string, unknown>>

/** `npm run load -- redis …`: the tables are as they were printed. */
export function experimentPart(result: Stored): Part {
  const { experiment, summary, tables = [], conclusions = [], documents, servers } = result
  const builds = new Set(servers.map((server) => redisText(server)))
  return {
    name: experiment,
    title: titleOf(result),
    headline: [],
    sections: [
      {
        title: 'What came out',
        paragraphs: [
          ...endingText(result),
          ...(summary ? [sentence(summary)] : []),
          ...inParagraphs(conclusions),
        ],
        tables: [...tables.map(printedTable), ...withoutTables(result)],
        notes: disturbance(result.elsewhere),
      },
      ...besides(documents),
    ],
    provenance: provenanceOf(result, [
      ['Redis', [...builds].join('; ') || '-'],
      ['Options', settingsText(result.options)],
      ['Limits', settingsText(result.limits)],
      ...(result.network ? ([['Network', result.network]] as const) : []),
    ]),
    samples: ['samples', 'long'].flatMap((name) => {
      const list = result[name]
      return isTable(list) ? [sampleTable(`Every run of ${experiment}: ${name}`, list)] : []
    }),
    document: result,
  }
}

/** Sentences that were broken into lines for the terminal, each in one. */
function inParagraphs(lines: readonly string[]): string[] {
  const paragraphs: string[] = []
  for (const line of lines) {
    const last = paragraphs.at(-1)
    if (last !== undefined && !/[.:!?]$/.test(last)) paragraphs.splice(-1, 1, `${last} ${line}`)
    else paragraphs.push(line)
  }
  return paragraphs
}

const titles: Record<string, string> = {
  'short-connections': 'Redis: short connections',
  'io-threads': 'Redis: I/O threads',
  info: 'Redis: INFO beside many idle connections',
  'slow-reader': 'Redis: replies that nobody reads',
  pipelining: 'Redis: pipelines',
  client: 'Redis: a single client',
  ports: 'Running out of ports',
}

function titleOf({ experiment, options }: Stored): string {
  const { shape } = options as { shape?: string }
  return `${titles[experiment] ?? `Redis: ${experiment}`}${shape ? `, shape ${shape}` : ''}`
}

const sentence = (text: string) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`

/** `rounds 3, links unix loopback`; of what is no plain value, the name. */
function settingsText(settings: object): string {
  const text = (value: unknown): string => {
    if (Array.isArray(value)) return value.map(text).join(' ')
    if (typeof value !== 'object' || value === null) return String(value)
    return 'name' in value ? String(value.name) : JSON.stringify(value)
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${text(value)}`)
    .join(', ')
}

const isTable = (value: unknown): value is object[] =>
  Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'object')

/** A table for the terminal, whose heads have line breaks, some of them within a word. */
export function printedTable({ title, head, rows, texts }: TextTable): ReportTable {
  return {
    caption: title ?? '',
    head: head.map((cell) =>
      cell.replaceAll(/-\n/g, '').replaceAll('_\n', '_').replaceAll('\n', ' '),
    ),
    rows: rows.map(([first = '', ...rest]) => [unpadded(first), ...rest]),
    ...(texts && { texts }),
  }
}

/** A label whose parts stand below each other in the terminal. */
const unpadded = (label: string) => label.trim().replaceAll(/ {2,}/g, ', ')

/** What an old file has instead of the tables. */
function withoutTables({ tables, summaries }: Stored): ReportTable[] {
  if (tables !== undefined || !isTable(summaries)) return []
  return [sampleTable('Summaries: medians of the rounds', summaries)]
}

function disturbance(elsewhere: number | null | undefined): string[] {
  if (!elsewhere || elsewhere < DISTURBED) return []
  return [
    `${percent(elsewhere)} of the CPU time went to other programs, or to other guests of the host: trust the CPU times rather than the rates and latencies.`,
  ]
}

function besides(documents: readonly DocumentFigure[]): Section[] {
  if (documents.length === 0) return []
  return [{ title: "The documents' figures", tables: documentsTables(documents) }]
}
