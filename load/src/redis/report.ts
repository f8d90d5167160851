import Table from 'cli-table3'
import { figure } from '../http/report.ts'
import type { Machine } from '../measure/machine.ts'
import type { Summary } from '../statistics.ts'
import type { DocumentFigure, FindingsTable, Server } from './experiment.ts'

// Columns set apart by spaces, and one line below the header.
const chars = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '─', 'mid-mid': '──' },
  ...{ right: '', 'right-mid': '', middle: '  ' },
}

export function renderTable({ title, head, rows }: FindingsTable): string {
  const table = new Table({
    head: [...head],
    colAligns: head.map((_, index) => (index === 0 ? 'left' : 'right')),
    chars,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return `${title === undefined ? '' : `${title}\n\n`}${table.toString()}`
}

/** Median with the range of the rounds: `13.9 (13.5-14.4)`; `-` for what could not be measured. */
export function withRange(summary: Summary | null): string {
  if (!summary) return '-'
  const { median, min, max } = summary
  return min === max ? figure(median) : `${figure(median)} (${figure(min)}-${figure(max)})`
}

/** A share of 0 to 1 as a percentage: `97.1 %`, `0.04 %`. */
export function percent(share: number): string {
  return `${figure(share * 100)} %`
}

/** The documents' own figures, a line each, under their source. */
export function documentLines(figures: readonly DocumentFigure[]): string {
  const sources = Map.groupBy(figures, ({ source }) => source)
  return [...sources]
    .map(([source, list]) => {
      const width = Math.max(...list.map(({ what }) => what.length))
      const lines = list.map(
        ({ what, value, unit }) => `  ${what.padEnd(width)}  ${figure(value)} ${unit}`,
      )
      return [`The documents measured (${source}):`, ...lines].join('\n')
    })
    .join('\n')
}

/** What it was measured on. */
export function circumstances(machine: Machine, servers: readonly Server[]): string {
  const gigabytes = (machine.memoryBytes / 2 ** 30).toFixed(0)
  const builds = servers.map(({ facts, build }) => `${facts.version} ${facts.build ?? build}`)
  return [
    `Machine  ${machine.cpu}, ${machine.cores} cores, ${gigabytes} GiB, ${machine.kernel}`,
    ...(builds.length > 0 ? [`Redis    ${[...new Set(builds)].join(', ')}`] : []),
  ].join('\n')
}
