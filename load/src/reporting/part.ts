import type { Experiment } from '../experiment/experiment.ts'
import { percent } from '../experiment/figures.ts'
import { IO_THREADS, type Result } from '../experiment/result.ts'
import { Rows } from '../experiment/rows.ts'
import type { Headline, Section, Table } from '../experiment/section.ts'
import { judgeThresholds, parseThreshold } from '../experiment/thresholds.ts'
import { notesOf } from './columns.ts'
import { thresholdSections } from './thresholds.ts'

/** A result as the terminal, Markdown and the page show it. */
export interface Part {
  readonly title: string
  /** The result in sentences, the figure first; empty where none is claimed. */
  readonly claims: readonly string[]
  /** Undefined where the first claim is the headline. */
  readonly headline: Headline | undefined
  /** Why rounds are missing; empty when none are. */
  readonly ending: readonly string[]
  /** What the marks in the tables mean. */
  readonly notes: readonly string[]
  readonly sections: readonly Section[]
  /** What it was measured with. */
  readonly facts: readonly (readonly [label: string, text: string])[]
  readonly result: Result
}

export function partOf({ experiment, result }: { experiment: Experiment; result: Result }): Part {
  const rows = Rows.of(experiment, result.samples)
  const thresholds = (result.thresholds ?? []).map((text) => parseThreshold(experiment, text))
  return {
    title: [experiment.title, experiment.detail?.(result)].filter(Boolean).join(', '),
    claims: experiment.claims(rows, result).flatMap((claim) => claim || []),
    headline: experiment.headline?.(rows, result),
    ending: endingOf(result, experiment),
    notes: notesOf(rows),
    sections: [
      ...experiment.sections(rows, result).map((section) => ({
        ...section,
        tables: section.tables.map((table) => withIoThreads(table, result)),
      })),
      ...thresholdSections(rows, judgeThresholds(rows, thresholds)),
    ],
    facts: provenanceOf(result),
    result,
  }
}

/** Says beside figures whether I/O threads were on. */
function withIoThreads(table: Table, result: Result): Table {
  const threads = ioThreadsText(result)
  const hasFigures = table.texts.length < table.head.length
  return threads && hasFigures ? { ...table, caption: `${table.caption}; ${threads}` } : table
}

/** `I/O threads off`, `3 I/O threads`; null for a result that does not say, such as one without a Redis. */
export function ioThreadsText({ load, options }: Result): string | null {
  const recorded = IO_THREADS in load ? load[IO_THREADS] : options.ioThreads
  if (recorded === undefined) return null
  if (recorded === null) return 'I/O threads unknown'
  const settings = String(recorded).split(/,\s*/)
  if (settings.length > 1) return `I/O threads ${settings.join(', ')} (1 is off)`
  return settings[0] === '1' ? 'I/O threads off' : `${settings[0]} I/O threads`
}

function endingOf(
  { interrupted, failure }: Result,
  { endsEarly }: Pick<Experiment, 'endsEarly'>,
): string[] {
  if (interrupted && endsEarly) return ['Interrupted: figures are of the time until then.']
  if (interrupted) return ['Interrupted: figures are of the complete rounds.']
  if (failure === undefined) return []
  return [`It failed, so figures are of the complete rounds: ${failure.split('\n', 1)[0]}`]
}

/** Facts to print before a run. */
export function factsOf(
  of: Pick<Result, 'machine' | 'load' | 'software' | 'options'>,
): [label: string, text: string][] {
  const { cpu, cores, memoryBytes, kernel, node } = of.machine
  const gigabytes = (memoryBytes / 2 ** 30).toFixed(0)
  return [
    ['Machine', `${cpu}, ${cores} cores, ${gigabytes} GiB, ${kernel}, Node ${node.slice(1)}`],
    ...Object.entries({ ...of.software, ...of.load }).flatMap(
      ([label, value]): [string, string][] => (value === null ? [] : [[label, String(value)]]),
    ),
    ['Options', settingsText(of.options)],
  ]
}

function provenanceOf(result: Result): [label: string, text: string][] {
  const { elsewhere, network } = result
  return [
    ...factsOf(result),
    ['Network', network],
    ['Commit', commitOf(result) ?? 'unknown'],
    ['CPU time that went elsewhere', elsewhere === null ? 'unknown' : percent(elsewhere)],
  ]
}

export const commitOf = ({ git }: Result): string | null =>
  git && `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}`

/** `rounds 3, links unix loopback`; of an object, its name. */
function settingsText(settings: Readonly<Record<string, unknown>>): string {
  const text = (value: unknown): string => {
    if (Array.isArray(value)) return value.map(text).join(' ')
    if (typeof value !== 'object' || value === null) return String(value)
    return 'name' in value ? String(value.name) : JSON.stringify(value)
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${text(value)}`)
    .join(', ')
}
