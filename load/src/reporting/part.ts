import { ioThreadsText as wordingOf } from '@onetrip/stack/redis-info.ts'
import type { Experiment } from '../experiments/experiment.ts'
import { percent } from '../rounds/figures.ts'
import { IO_THREADS, type Result } from '../rounds/result.ts'
import { Rows } from '../rounds/rows.ts'
import type { Section, Table } from '../rounds/section.ts'
import { notesOf, tableOf } from './columns.ts'

/** The report of one result, independent of the output format. */
export interface Part {
  readonly title: string
  /** The reason for missing rounds; empty if the run is complete. */
  readonly ending: readonly string[]
  readonly conclusion: string | null
  /** The explanations of the marks in the tables. */
  readonly notes: readonly string[]
  readonly sections: readonly (Pick<Section, 'title' | 'isDetail'> & { readonly table: Table })[]
  /** The conditions of the measurement. */
  readonly facts: readonly (readonly [label: string, text: string])[]
  readonly result: Result
}

export function partOf({ experiment, result }: { experiment: Experiment; result: Result }): Part {
  const rows = Rows.of(experiment, result.samples)
  return {
    title: experiment.title,
    ending: endingOf(result),
    conclusion: experiment.conclusion?.(rows) ?? null,
    notes: notesOf(rows),
    sections: experiment
      .sections(rows, result)
      .map((section) => ({
        ...section,
        table: withIoThreads(tableOf(section.rows ?? rows, section), result),
      }))
      .filter(({ table }) => table.rows.length > 0),
    facts: provenanceOf(result),
    result,
  }
}

/** Adds the setting of I/O threads to the caption of a table with figures. */
function withIoThreads(table: Table, result: Result): Table {
  const threads = ioThreadsText(result)
  const hasFigures = table.texts.length < table.head.length
  return threads && hasFigures ? { ...table, caption: `${table.caption}; ${threads}` } : table
}

/** `I/O threads off`, `3 I/O threads`; null for a result without this fact, such as one without Redis. */
export function ioThreadsText({ load, options }: Result): string | null {
  const recorded = IO_THREADS in load ? load[IO_THREADS] : options.ioThreads
  if (recorded === undefined) return null
  const settings = String(recorded).split(/,\s*/)
  if (settings.length > 1) return `I/O threads ${settings.join(', ')} (1 is off)`
  return wordingOf(recorded === null ? null : Number(recorded))
}

function endingOf({ interrupted, failure }: Result): string[] {
  if (interrupted) return ['Interrupted: the figures cover the complete rounds only.']
  if (failure === undefined) return []
  return [`Failed: the figures cover the complete rounds only. ${failure.split('\n', 1)[0]}`]
}

/** The facts that are printed before a run. */
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
    ['CPU time of other programs', elsewhere === null ? 'unknown' : percent(elsewhere)],
  ]
}

export const commitOf = ({ git }: Result): string | null =>
  git && `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}`

/** `rounds 3, links unix loopback`. An object is shown by its name. */
function settingsText(settings: Readonly<Record<string, unknown>>): string {
  const text = (value: unknown): string => {
    if (Array.isArray(value)) return value.map(text).join(' ')
    if (typeof value !== 'object' || value === null) return String(value)
    return 'name' in value ? String(value.name) : JSON.stringify(value)
  }
  return Object.entries(settings)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0)
    .map(([name, value]) => `${name} ${text(value)}`)
    .join(', ')
}
