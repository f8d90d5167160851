import { summaryOf } from '@onetrip/stack/measure/latencies.ts'
import { minutes, wholeNumber } from '@onetrip/stack/parsers.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { counted, figure } from '../../experiment/figures.ts'
import type { Result } from '../../experiment/result.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { LineChart, Section, Table } from '../../experiment/section.ts'
import { seriesOf } from '../../measure/series.ts'
import { timeCharts } from '../../reporting/charts.ts'
import { errors, sectionOf } from '../../reporting/columns.ts'
import type { ResourceName } from './readings.ts'
import { readEveryMs, soak as runSoak, type Soaked, type SoakOptions } from './run.ts'
import { type SoakStack, startSoakStack } from './stack.ts'
import type { Verdict } from './steady.ts'

/** What a sample keeps besides its values. */
type Details = Pick<Soaked, 'injected' | 'readings' | 'verdicts' | 'discrepancies' | 'seconds'>

const MOST_DISCREPANCIES = 50

/** Hours in minutes: does anything leak, and is anything lost, while things go wrong? */
export const soak: Experiment<SoakOptions, SoakStack> = {
  name: 'soak',
  title: 'Soak: faults under load, with an audit',
  summary: 'run for long with faults, and show that nothing leaks and no view is lost',
  group: 'Over HTTP',
  about: `
Starts Redis, a relay in front of it and an API with two workers, and sends logins, views, reads, changes of
session data and logouts at a fixed rate. After a warm-up, a fault a minute (each kind at least once): Redis
is killed and restarted, connections are cut within a reply, a worker is killed, Redis is paused for 3 s, the
clock of the API steps back by 30 s; on a cluster these happen to one node after the other, and a slot with
sessions moves to another node. The cluster has no replicas, since one that takes over may lack views that were
acknowledged (replication is asynchronous). Redis syncs its log before it answers (appendfsync always), since an
acknowledged view must survive a kill. The clock is stepped by a module that is loaded into the API and
replaces Date.now; Redis keeps its own.

At the end every acknowledged view, login, logout and change of data is compared with what Redis has: none
lost, none counted twice; what had an unknown outcome may count or not. Heap (after garbage collection), RSS,
descriptors and Redis's memory must be steady: their trend after the warm-up stays within the bound of the
table. The figures are of the worker that lives from the start to the end, of the primary, and of Redis.

npm run soak is the same as npm run load -- soak. Exit code 4: something was lost, counted twice, wrong, not
steady, or did not recover. Ctrl-C ends the traffic, audits, and shows what there is.

Examples:
  npm run load -- soak --minutes 30 --json load/results/soak.json
  npm run load -- soak --minutes 30 --cluster --json load/results/soak-cluster.json
  npm run load -- soak --minutes 1 --html soak.html`,
  rounds: 1,
  duration: null,
  quick: { minutes: 1 },
  seconds: { quick: null, usual: null, full: null },
  configure(command) {
    command
      .option('--minutes <n>', 'how long', minutes(0.5, 1_440), 30)
      .option('--cluster', 'on a Redis Cluster of three primaries')
      .option('--rate <n>', 'requests per second', wholeNumber(20, 5_000), 200)
      .option('--sessions <n>', 'users', wholeNumber(10, 1_000), 100)
      .option('--seed <n>', 'of the random choices', wholeNumber(1, 1_000_000), 1)
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
  thresholds: ['lost=0', 'extra=0', 'wrong=0', 'unrecovered=0', 'unsteady=0', 'errors=0'],
  endsEarly: true,
  loadOptions: ['minutes', 'cluster', 'rate', 'sessions'],

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
    const { counts, latencies, injected, verdicts, discrepancies, readings, seconds } = soaked
    const { p50, p99 } = summaryOf(latencies)
    const details: Details = {
      ...{ seconds, injected, verdicts, readings },
      discrepancies: discrepancies.slice(0, MOST_DISCREPANCIES),
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
        ...{ p50, p99 },
        notSent: counts.notSent,
      },
      errors: soaked.errors,
      series: seriesOf(soaked.samples),
      details: { ...details },
    }
  },

  sections(rows, result) {
    const details = detailsOf(rows)
    return [
      sectionOf(rows, {
        title: 'Traffic and audit',
        charts: timeCharts(rows),
        caption: trafficCaption(result),
        columns: [
          ...['requests', 'acknowledged', 'unknown', 'notWritten', 'lost', 'extra', 'wrong'],
          ...['p50', 'p99', 'notSent', errors],
        ],
      }),
      ...(details ? [faultSection(details), resourceSection(details)] : []),
      ...(details && details.discrepancies.length > 0 ? [discrepancySection(details)] : []),
    ]
  },
  claims(rows) {
    const [row] = rows.all
    const details = detailsOf(rows)
    if (!row || !details) return []
    const { injected, verdicts, seconds } = details
    const value = (metric: string) => row.median(metric) ?? 0
    return [
      `In ${figure(seconds / 60)} minutes with ${counted(injected.length, 'fault')}, ${counted(value('acknowledged'), 'view')} were acknowledged: ${whole(value('lost'))} lost, ${whole(value('extra'))} counted twice. ${steadyClaim(verdicts)}`,
      value('wrong') > 0 && `${counted(value('wrong'), 'record')} did not add up.`,
      value('unrecovered') > 0 && `${counted(value('unrecovered'), 'fault')} did not heal in 30 s.`,
      leakClaim(verdicts, value('requests')),
    ]
  },
}

const whole = (count: number) => count.toLocaleString('en-US')

function detailsOf(rows: Rows): Details | undefined {
  return rows.all[0]?.samples[0]?.details as Details | undefined
}

const trafficCaption = ({ options }: Pick<Result, 'options'>) =>
  `${whole(Number(options.sessions))} users send ${whole(Number(options.rate))} requests/s; not sent: all users waited for an answer`

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
    caption: 'The trend after the warm-up: at its start and at the end of the run',
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
  return { title: 'Resources', charts: resourceCharts(details), tables: [table] }
}

function resourceCharts({ readings }: Details): LineChart[] {
  const chart = (title: string, unit: string, of: readonly ResourceName[], scale: number) => ({
    ...({ kind: 'lines', title, unit, logarithmic: false } as const),
    x: { label: 'seconds', names: readings.map(({ second }) => second.toFixed(0)) },
    lines: of.map((name) => ({
      name,
      points: readings.map(({ values }, index) => {
        const value = values[name]
        return [index, value === undefined ? null : value / scale] as const
      }),
    })),
  })
  if (readings.length < 2) return []
  return [
    chart('Memory', 'MB', ['worker heap', 'worker RSS', 'Redis memory', 'Redis RSS'], MB),
    chart('Descriptors and connections', '', ['worker descriptors', 'Redis connections'], 1),
  ]
}

const discrepancySection = ({ discrepancies }: Details): Section => ({
  title: 'What does not add up',
  tables: [
    {
      caption: 'Acknowledged and unknown by the clients, stored by Redis',
      head: ['record'],
      rows: discrepancies.map((text) => [text]),
      texts: [0],
    },
  ],
})

function steadyClaim(verdicts: readonly Verdict[]): string {
  const unsteady = verdicts.filter(({ isSteady }) => !isSteady)
  if (unsteady.length === 0) return 'Heap, RSS, descriptors and the memory of Redis were steady.'
  if (unsteady.every(({ start }) => start === null)) return 'It was too short to judge resources.'
  return `Not steady: ${unsteady.map(({ resource }) => resource).join(', ')}.`
}

/** What the bounds mean: the smallest leak that would have been seen. */
function leakClaim(verdicts: readonly Verdict[], requests: number): string | false {
  const heap = verdicts.find(({ resource }) => resource === 'worker heap')
  const memory = verdicts.find(({ resource }) => resource === 'Redis memory')
  if (!heap?.bound || !memory?.bound || requests === 0) return false
  const each = (bound: number) => `${figure(bound / requests)} bytes`
  return `A leak per request of ${each(heap.bound)} in the heap of a worker that answers all of them, or of ${each(memory.bound)} in Redis, would have crossed the bound.`
}
