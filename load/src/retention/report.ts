import { styleText } from 'node:util'
import { figure } from '../http/report.ts'
import type { FindingsTable } from '../redis/experiment.ts'
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
  blocking: Blocking
  victim: VictimRun
}

export function stageTable(stages: readonly Stage[], title: string): FindingsTable {
  return {
    title,
    head: [
      'clean-up',
      'sessions\nremoved',
      'seconds',
      'Redis\nCPU µs\n/session',
      'commands\nof 1 ms\nor more',
      'longest\ncommand\nms',
      'LATENCY\nms',
      "victim's\np50 ms",
      'p99\nms',
      'longest\nms',
    ],
    rows: stages.map(({ name, removed, seconds, mainCpuSeconds, blocking, victim }) => [
      name,
      removed === 0 ? '-' : figure(removed),
      figure(seconds),
      removed === 0 ? '-' : figure((mainCpuSeconds * 1e6) / removed),
      String(blocking.slow),
      longestOf(blocking),
      Object.entries(blocking.events)
        .map(([event, ms]) => `${event} ${ms}`)
        .join('\n') || 'nothing',
      figure(victim.p50),
      figure(victim.p99),
      figure(victim.max),
    ]),
  }
}

function longestOf({ longest }: Blocking): string {
  if (!longest) return `below ${REMEMBERED_MICROS / 1_000}`
  return `${figure(longest.milliseconds)}\n${longest.command}`
}

export function conclusionsOf(stages: readonly Stage[]): string[] {
  const janitors = stages.filter(({ name }) => name.startsWith('janitor'))
  return janitors.map(({ name, removed, seconds, blocking, victim }) => {
    const longest = blocking.longest?.milliseconds
    const text =
      `${name}: ${figure(removed)} sessions ended in ${figure(seconds)} s; no command took Redis longer than ` +
      `${longest === undefined ? REMEMBERED_MICROS / 1_000 : figure(longest)} ms, and 99 % of the views no longer than ${figure(victim.p99)} ms.`
    return styleText('bold', text)
  })
}
