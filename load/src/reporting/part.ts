import type { Experiment } from '../experiment/experiment.ts'
import { figure, percent } from '../experiment/figures.ts'
import type { Result } from '../experiment/result.ts'
import { endingText } from '../experiment/rounds.ts'
import { Rows } from '../experiment/rows.ts'
import type { Section, Table } from '../experiment/section.ts'
import type { Published } from '../experiment/shape.ts'
import { notesOf } from './columns.ts'

/** A result as the terminal, Markdown and the page show it. */
export interface Part {
  readonly name: string
  readonly title: string
  /** The result in sentences, the figure first; empty where none is claimed. */
  readonly claims: readonly string[]
  /** Why rounds are missing; empty when none are. */
  readonly ending: readonly string[]
  /** What the marks in the tables mean. */
  readonly notes: readonly string[]
  readonly sections: readonly Section[]
  readonly provenance: Provenance
  readonly result: Result
}

interface Provenance {
  /** ISO 8601. */
  readonly date: string
  readonly command: string
  readonly facts: readonly (readonly [label: string, text: string])[]
}

export function partOf(experiment: Experiment, result: Result): Part {
  const rows = Rows.of(experiment, result.samples)
  return {
    name: experiment.name,
    title: [experiment.title, experiment.detail?.(result) ?? ''].filter(Boolean).join(', '),
    claims: experiment.claims(rows, result).flatMap((claim) => claim || []),
    ending: endingText(result),
    notes: notesOf(rows),
    sections: [...experiment.sections(rows, result), ...publishedSection(experiment.published)],
    provenance: provenanceOf(result),
    result,
  }
}

export function factsOf({
  machine,
  load,
  software,
  options,
}: Pick<Result, 'machine' | 'load' | 'software' | 'options'>): [label: string, text: string][] {
  const { cpu, cores, memoryBytes, kernel, node } = machine
  const gigabytes = (memoryBytes / 2 ** 30).toFixed(0)
  return [
    ['Machine', `${cpu}, ${cores} cores, ${gigabytes} GiB, ${kernel}, Node ${node.slice(1)}`],
    ...Object.entries({ ...software, ...load }).flatMap(([label, value]): [string, string][] =>
      value === null ? [] : [[label, String(value)]],
    ),
    ['Options', settingsText(options)],
  ]
}

function provenanceOf(result: Result): Provenance {
  const { date, command, git, elsewhere, network, limits } = result
  const commit = git ? `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}` : 'unknown'
  return {
    date,
    command,
    facts: [
      ...factsOf(result),
      ['Limits', settingsText({ ...limits })],
      ['Network', network],
      ['Commit', commit],
      ['CPU time that went elsewhere', elsewhere === null ? 'not told here' : percent(elsewhere)],
    ],
  }
}

/** `rounds 3, links unix loopback`; of what is no plain value, the name. */
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

function publishedSection(figures: readonly Published[] = []): Section[] {
  if (figures.length === 0) return []
  const tables = [...Map.groupBy(figures, ({ source }) => source)].map(
    ([source, list]): Table => ({
      caption: `The documents measured (${source})`,
      head: ['what', 'figure', 'unit'],
      rows: list.map(({ what, value, unit }) => [what, figure(value), unit]),
      texts: [0, 2],
    }),
  )
  return [{ title: "The documents' figures", tables }]
}
