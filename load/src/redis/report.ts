import type { Machine } from '../measure/machine.ts'
import { figure } from '../table.ts'
import type { DocumentFigure, Server } from './experiment.ts'

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
