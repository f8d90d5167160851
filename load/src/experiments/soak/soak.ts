import { summaryOf } from '@onetrip/stack/measure/latencies.ts'
import { minutes, wholeNumber } from '@onetrip/stack/parsers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { errors, sectionOf } from '../../reporting/columns.ts'
import type { ResourceName } from './readings.ts'
import { readEveryMs, soak as runSoak, type Soaked, type SoakOptions } from './run.ts'
import { type SoakStack, startSoakStack } from './stack.ts'
import type { Verdict } from './steady.ts'

/** The details of a sample. */
type Details = Pick<Soaked, 'injected' | 'verdicts' | 'discrepancies' | 'seconds'>

const MAX_DISCREPANCIES = 50

/** Runs load with injected faults and checks for lost views and leaks. */
export const soak: Experiment<SoakOptions, SoakStack> = {
  name: 'soak',
  title: 'Soak: faults under load, with an audit',
  summary: 'a long run with injected faults: checks for lost views and leaks',
  about: `
Starts Redis, a relay in front of it and an API with two workers. Sends logins, views, reads, changes of session
data and logouts at a fixed rate. After a warm-up, it injects a fault per minute (each kind at least once): Redis
is killed and restarted, connections are cut within a reply, Redis is paused for 3 s, a worker is killed, and the
clock of the API is set back by 30 s.

With --cluster, nodes are killed and paused in turn, the connections to all nodes are killed, and a slot with
sessions moves to another node. The cluster has no replicas: replication is asynchronous, so after a failover a
replica may lack acknowledged views. Redis syncs its append-only file before it replies (appendfsync always),
because an acknowledged view must survive a kill. A module in the API replaces Date.now to set the clock back; the
clock of Redis does not change.

At the end, every acknowledged view, login, logout and change of data is compared with the data in Redis. None may
be lost or counted twice; requests with an unknown outcome may count or not. Heap (after garbage collection), RSS,
descriptors and Redis's memory must be steady: their trend after the warm-up stays within the bound in the table.
The figures are those of the worker that is never killed, of the primary process of the API, and of Redis.

npm run soak is equivalent to npm run load -- soak. Exit code 4: something was lost, counted twice, wrong or not
steady, or did not recover. Ctrl-C stops the traffic, runs the audit, and prints the results so far.

Examples:
  npm run load -- soak --minutes 30 --json load/results/soak.json
  npm run load -- soak --minutes 30 --cluster --json load/results/soak-cluster.json
  npm run load -- soak --minutes 1`,
  rounds: 1,
  duration: null,
  quick: { minutes: 1 },
  configure(command) {
    command
      .option('--minutes <n>', 'length of the run', minutes(0.5, 1_440), 30)
      .option('--cluster', 'use a Redis Cluster of three primaries')
      .option('--rate <n>', 'requests per second', wholeNumber(20, 5_000), 200)
      .option('--sessions <n>', 'number of users', wholeNumber(10, 1_000), 100)
      .option('--seed <n>', 'seed of the random choices', wholeNumber(1, 1_000_000), 1)
  },

  factors: [{ name: 'topology' }],
  subject: 'topology',
  metrics: [
    { name: 'requests', label: 'requests', format: 'whole' },
    { name: 'acknowledged', label: 'views acknowledged', format: 'whole' },
    { name: 'unknown', label: 'outcome unknown', format: 'whole' },
    { name: 'notWritten', label: 'not written', format: 'whole' },
    { name: 'lost', label: 'lost', format: 'whole' },
    { name: 'extra', label: 'counted twice', format: 'whole' },
    { name: 'wrong', label: 'wrong records', format: 'whole' },
    { name: 'faults', label: 'faults', format: 'whole' },
    { name: 'unrecovered', label: 'not recovered', format: 'whole' },
    { name: 'unsteady', label: 'not steady', format: 'whole' },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms' },
    { name: 'notSent', label: 'not sent', format: 'whole' },
  ],
  progress: ['acknowledged', 'lost', 'extra', 'wrong', 'unsteady'],
  failures: ({ all: [row] }) =>
    ['lost', 'extra', 'wrong', 'unrecovered', 'unsteady']
      .filter((metric) => row?.median(metric) !== 0)
      .concat(Object.keys(row?.errors ?? {}))
      .map((name) => `The soak failed: ${name}.`),
  endsEarly: true,

  prepare: (context, options) =>
    context.step('Starting Redis and the API', () =>
      startSoakStack(context, {
        cluster: options.cluster === true,
        readEveryMs: readEveryMs(options),
      }),
    ),
  cases: (_, { cluster }) => [{ topology: cluster ? 'cluster' : 'one Redis' }],

  async measure(_, stack, { options, context, note }) {
    const soaked = await runSoak(stack, options, { signal: context.signal, note })
    const { counts, latencies, injected, verdicts, discrepancies, seconds } = soaked
    const { p50, p99 } = summaryOf(latencies)
    const details: Details = {
      seconds,
      injected,
      verdicts,
      discrepancies: discrepancies.slice(0, MAX_DISCREPANCIES),
    }
    return {
      values: {
        requests: counts.requests,
        acknowledged: counts.acknowledged,
        unknown: counts.unknown,
        notWritten: counts.notWritten,
        lost: soaked.lost,
        extra: soaked.extra,
        wrong: discrepancies.length,
        faults: injected.length,
        unrecovered: injected.filter(({ recovered }) => !recovered).length,
        unsteady: verdicts.filter(({ isSteady }) => !isSteady).length,
        p50,
        p99,
        notSent: counts.notSent,
      },
      errors: soaked.errors,
      details: { ...details },
    }
  },

  sections(rows, result) {
    const details = detailsOf(rows)
    return [
      sectionOf(rows, {
        title: 'Traffic and audit',
        caption: trafficCaption(result),
        columns: [
          'requests',
          'acknowledged',
          'unknown',
          'notWritten',
          'lost',
          'extra',
          'wrong',
          'p50',
          'p99',
          'notSent',
          errors,
        ],
      }),
      ...(details ? [faultSection(details), resourceSection(details)] : []),
    ]
  },
  claims(rows) {
    const [row] = rows.all
    const details = detailsOf(rows)
    if (!row || !details) return []
    const { injected, verdicts, seconds, discrepancies } = details
    const value = (metric: string) => row.median(metric) ?? 0
    return [
      `In ${figure(seconds / 60)} minutes with ${counted(injected.length, 'fault')}, ${counted(value('acknowledged'), 'view')} were acknowledged: ${whole(value('lost'))} lost, ${whole(value('extra'))} counted twice. ${steadyClaim(verdicts)}`,
      value('wrong') > 0 && `Records with wrong data: ${whole(value('wrong'))}.`,
      value('unrecovered') > 0 &&
        `Faults without recovery within 30 s: ${whole(value('unrecovered'))}.`,
      leakClaim(verdicts, value('requests')),
      ...discrepancies.map((text) => `Wrong record: ${text}.`),
    ]
  },
}

const whole = (count: number) => count.toLocaleString('en-US')

function detailsOf(rows: Rows): Details | undefined {
  return rows.all[0]?.samples[0]?.details as Details | undefined
}

const trafficCaption = ({ options }: Pick<Result, 'options'>) =>
  `${whole(Number(options.sessions))} users send ${whole(Number(options.rate))} requests/s; "not sent": all users were waiting for an answer`

function faultSection({ injected }: Details): Section {
  const kinds = [...Map.groupBy(injected, ({ fault }) => fault)]
  const table: Table = {
    caption:
      'By kind of fault: the longest time without an acknowledged view, and views that failed',
    head: ['fault', 'times', 'longest gap s', 'outcome unknown', 'not written', 'not recovered'],
    rows: kinds.map(([fault, all]) => [
      fault,
      String(all.length),
      (Math.max(...all.map(({ gapMs }) => gapMs)) / 1_000).toFixed(2),
      sumOf(all, 'unknown'),
      sumOf(all, 'notWritten'),
      String(all.filter(({ recovered }) => !recovered).length),
    ]),
    texts: [0],
  }
  return { title: 'Faults', tables: [table] }
}

const sumOf = (all: Details['injected'], name: 'unknown' | 'notWritten') =>
  whole(all.reduce((sum, one) => sum + one[name], 0))

const MB = 1e6
const isBytes = (resource: ResourceName) => /heap|RSS|memory/.test(resource)

function amount(resource: ResourceName, value: number | null): string {
  if (value === null) return '-'
  return isBytes(resource) ? `${(value / MB).toFixed(2)} MB` : value.toFixed(1)
}

function resourceSection(details: Details): Section {
  const { verdicts } = details
  const table: Table = {
    caption: 'The trend line after the warm-up: its values at the start and at the end',
    head: ['resource', 'start', 'end', 'growth', 'may grow by', 'verdict'],
    rows: verdicts.map(({ resource, start, end, bound, isSteady }) => [
      resource,
      ...[start, end, start === null || end === null ? null : end - start, bound].map((value) =>
        amount(resource, value),
      ),
      isSteady ? 'steady' : start === null ? 'too few readings' : 'not steady',
    ]),
    texts: [0, 5],
  }
  return { title: 'Resources', tables: [table] }
}

function steadyClaim(verdicts: readonly Verdict[]): string {
  const unsteady = verdicts.filter(({ isSteady }) => !isSteady)
  if (unsteady.length === 0) return 'Heap, RSS, descriptors and the memory of Redis were steady.'
  if (unsteady.every(({ start }) => start === null)) {
    return 'The run was too short for a verdict on resources.'
  }
  return `Not steady: ${unsteady.map(({ resource }) => resource).join(', ')}.`
}

/** The smallest leak per request that the bounds detect. */
function leakClaim(verdicts: readonly Verdict[], requests: number): string | false {
  const heap = verdicts.find(({ resource }) => resource === 'worker heap')
  const memory = verdicts.find(({ resource }) => resource === 'Redis memory')
  if (!heap?.bound || !memory?.bound || requests === 0) return false
  const each = (bound: number) => `${figure(bound / requests)} bytes`
  return `The bounds would have detected a leak per request of about ${each(heap.bound)} in the heap of a worker that answers all requests, or of ${each(memory.bound)} in Redis.`
}
