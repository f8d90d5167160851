import { styleText } from 'node:util'
import { figure, type TextTable } from '../table.ts'
import { type Blocking, REMEMBERED_MICROS } from './blocking.ts'
import type { VictimRun } from './victim.ts'

/** One kind of clean-up, and what it did to Redis and to the victim. */
export interface Stage {
  name: string
  /** Sessions. */
  removed: number
  steps: number
  seconds: number
  mainCpuSeconds: number
  /** In which Redis's main thread had something to do, and another program had the core. */
  waitedSeconds: number
  blocking: Blocking
  victim: VictimRun
}

export function stageTable(stages: readonly Stage[], title: string): TextTable {
  return {
    title,
    head: [
      'clean-up',
      'sessions\nremoved',
      'seconds',
      'Redis\nCPU µs\n/session',
      'waited\nfor CPU\nms',
      'commands\nof 1 ms\nor more',
      'longest\ncommand\nms',
      'longest\nLATENCY\nms',
      'view\np50\nms',
      'view\np99\nms',
      'longest\nview\nms',
    ],
    rows: stages.map((stage) => {
      const { name, removed, seconds, mainCpuSeconds, waitedSeconds, blocking, victim } = stage
      return [
        name,
        removed === 0 ? '-' : figure(removed),
        figure(seconds),
        removed === 0 ? '-' : figure((mainCpuSeconds * 1e6) / removed),
        figure(waitedSeconds * 1_000),
        String(blocking.slow),
        `${longestOf(blocking)}\n${blocking.longest?.command ?? ''}`.trim(),
        String(Math.max(0, ...Object.values(blocking.events)) || '-'),
        figure(victim.p50),
        figure(victim.p99),
        figure(victim.max),
      ]
    }),
  }
}

function longestOf({ longest }: Blocking): string {
  return longest ? figure(longest.milliseconds) : `below ${REMEMBERED_MICROS / 1_000}`
}

/** @param prioritised whether Redis had priority over other programs. */
export function conclusionsOf(stages: readonly Stage[], prioritised: boolean): string[] {
  const lines = stages
    .filter(({ name }) => name.startsWith('janitor'))
    .map(({ name, removed, seconds, blocking, victim }) => {
      const longest = blocking.longest?.milliseconds ?? REMEMBERED_MICROS / 1_000
      const text =
        `${name}: ${figure(removed)} sessions ended in ${figure(seconds)} s; no command took Redis longer than ` +
        `${figure(longest)} ms, and 99 % of the views no longer than ${figure(victim.p99)} ms.`
      return styleText('bold', text)
    })
  if (!prioritised) {
    lines.push(
      'Redis had no priority over other programs here: a command that one of them interrupted counts as long.',
    )
  }
  return lines
}
