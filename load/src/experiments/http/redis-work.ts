import type { CommandStats } from '@onetrip/session-store'
import { commandName, figure } from '../../experiment/figures.ts'
import type { Row, Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { tableOf } from '../../reporting/columns.ts'

type Stats = Readonly<Record<string, CommandStats>>

/** Redis's work per request; no section for results of older versions, which lack these metrics. */
export function redisWork(rows: Rows): Section[] {
  if (!rows.all.some((row) => row.median('redisBytesIn') !== null)) return []
  return [
    {
      title: 'Work of Redis per request',
      tables: [
        tableOf(rows, {
          caption:
            'CPU time of Redis in user mode and in the kernel, and network traffic, per request',
          columns: [
            'redisCpuMicros',
            'redisUserMicros',
            'redisKernelMicros',
            'redisBytesIn',
            'redisBytesOut',
          ],
        }),
        commandTable(rows),
      ],
    },
  ]
}

/** The commands of INFO commandstats. */
const commandTable = (rows: Rows): Table => ({
  caption: 'Commands that Redis executed, by execution time',
  head: ['variant', 'command', 'calls /request', 'µs /call', 'µs /request'],
  rows: rows.all.flatMap((row) =>
    statsOf(row).map(([name, { calls, micros }]) => [
      row.subject,
      commandName(name),
      figure(calls),
      figure(micros / calls),
      figure(micros),
    ]),
  ),
  texts: [0, 1],
})

/** Means over the rounds, without commands that fewer than 1 % of the requests cause. */
function statsOf({ samples }: Row): [name: string, stats: CommandStats][] {
  const rounds = samples.flatMap<Stats>(({ details }) => (details?.commandStats as Stats) ?? [])
  const names = new Set(rounds.flatMap((stats) => Object.keys(stats)))
  const mean = (name: string, of: keyof CommandStats) =>
    rounds.reduce((sum, stats) => sum + (stats[name]?.[of] ?? 0), 0) / rounds.length
  return [...names]
    .map((name): [string, CommandStats] => [
      name,
      { calls: mean(name, 'calls'), micros: mean(name, 'micros') },
    ])
    .filter(([, { calls }]) => calls >= 0.01)
    .toSorted(([, a], [, b]) => b.micros - a.micros)
}
