import { figure, percent, type TextTable } from '../table.ts'
import { type CaseRun, EXHAUSTED } from './run-case.ts'

/** How long Linux keeps a closed connection: TCP_TIMEWAIT_LEN, which is no setting. */
const TIME_WAIT_SECONDS = 60

/** Ports of Linux's default range, 32768 to 60999. */
const DEFAULT_PORTS = 28_232

const whole = (count: number) => count.toLocaleString('en-US')

const refusedOf = ({ errors }: CaseRun) => errors[EXHAUSTED] ?? 0
const attemptsOf = ({ ok, errors }: CaseRun) =>
  ok + Object.values(errors).reduce((sum, count) => sum + count, 0)

export function caseTable(runs: readonly CaseRun[], rate: number): TextTable {
  return {
    title: `${figure(rate)} views/s asked for`,
    head: [
      'case',
      'ports',
      'tcp_tw_\nreuse',
      'EADDRNOTAVAIL',
      'first\nafter s',
      'views/s\nbefore',
      'views/s\nafter',
      'most ports in\nTIME_WAIT',
      'on Redis\nside',
      'Redis CPU\nµs/view',
    ],
    rows: runs.map((run) => [
      run.description,
      whole(run.ports),
      String(run.reuse),
      refusedOf(run) === 0 ? 'never' : percent(refusedOf(run) / attemptsOf(run)),
      run.first ? run.first.seconds.toFixed(2) : '-',
      figure(run.rateBefore),
      run.rateAfter === null ? '-' : figure(run.rateAfter),
      whole(Math.max(...run.timeline.map(({ waiting }) => waiting))),
      whole(run.waitingAtServer),
      figure(run.redisCpuMicros),
    ]),
  }
}

/** Ports in TIME_WAIT over time. */
export function timelineTable(runs: readonly CaseRun[], duration: number): TextTable {
  const marks = [0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60].filter((seconds) => seconds <= duration)
  return {
    title: "Clients' ports in TIME_WAIT after",
    head: ['case', ...marks.map((seconds) => `${seconds} s`)],
    rows: runs.map((run) => [
      run.description,
      ...marks.map((mark) => {
        const at = run.timeline.find(({ seconds }) => seconds >= mark)
        return at ? whole(at.waiting) : '-'
      }),
    ]),
  }
}

export function conclusionsOf(runs: readonly CaseRun[]): string[] {
  const byName = new Map(runs.map((run) => [run.name, run]))
  const [closes, quit, pool] = ['no-reuse', 'quit', 'pool'].map((name) => byName.get(name))
  return [
    'A connection that the client closes keeps its port for 60 s (TIME_WAIT). When all ports of the range',
    `wait, connecting to that address fails with EADDRNOTAVAIL: the documents' "Cannot assign requested`,
    `address". Of the default range, ${whole(DEFAULT_PORTS)} ports, ${whole(Math.round(DEFAULT_PORTS / TIME_WAIT_SECONDS))} connections a second use up all in a minute.`,
    'With tcp_tw_reuse a new connection may have a port that has waited for a second (2, the default: only',
    'on loopback; 1: to everywhere), so that as many connections a second are possible as there are ports.',
    'Beyond tcp_max_tw_buckets none waits. After QUIT Redis closes first, and its side waits, which hinders',
    'nobody. Where connections are tracked (a firewall, a container engine), closed ones fill that table,',
    'too; when it is full, SYNs are dropped and connecting times out.',
    ...(closes?.first
      ? [
          `Here ${whole(closes.ports)} ports lasted ${closes.first.seconds.toFixed(2)} s, for ${whole(closes.first.connections)} views.`,
        ]
      : []),
    ...(pool && refusedOf(pool) === 0 ? ['With a pool it never happens.'] : []),
    ...(pool && quit && pool.ok > 0 && quit.ok > 0
      ? [
          `Redis used ${figure(quit.redisCpuMicros)} µs of CPU for a naive view and ${figure(pool.redisCpuMicros)} µs for a pooled one: ${figure(quit.redisCpuMicros / pool.redisCpuMicros)} times as much, for accepting, greeting and closing.`,
        ]
      : []),
  ]
}
