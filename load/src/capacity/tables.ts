import { figure, percent } from '../experiment/figures.ts'
import type { Rows } from '../experiment/rows.ts'
import type { Table } from '../experiment/section.ts'
import type { Known } from './measurements.ts'
import {
  batchesPerView,
  hasIoThreads,
  type Machines,
  machineDefaults,
  memoryOf,
  type Plan,
  planFor,
  type Size,
} from './model.ts'
import { MAX_PARTITIONS, MIN_PARTITIONS } from './partitions.ts'
import { interpolate, valueAt } from './points.ts'
import { withPrefix } from './units.ts'

export interface Planned {
  size: Size
  plan: Plan
}

const whole = (value: number) => Math.round(value).toLocaleString('en-US')
const milliseconds = (ms: number) => (ms < 1_000 ? `${figure(ms)} ms` : `${figure(ms / 1_000)} s`)

type Line = readonly [what: string, text: (planned: Planned) => string]

const needs: readonly Line[] = [
  ['sessions', ({ size }) => whole(size.sessions)],
  ['views/s', ({ size }) => whole(size.viewsPerSecond)],
  ['API processes', ({ plan }) => whole(plan.apiProcesses)],
  ['Redis primaries', ({ plan }) => whole(plan.primaries)],
  ['replicas', ({ plan }) => whole(plan.replicas)],
  ['partitions', ({ plan }) => whole(plan.partitions)],
  ['memory, all primaries', ({ plan }) => withPrefix(plan.memoryBytes, 'B')],
  ['memory of the fullest', ({ plan }) => withPrefix(plan.memoryPerNode, 'B')],
  ['its main thread', ({ plan }) => percent(plan.mainPerNode)],
  ['its network', ({ plan }) => withPrefix(plan.networkPerNode, 'b/s')],
  ['runs out first', firstText],
]

const more: readonly Line[] = [
  ['CPU of the API /view', ({ plan }) => `${figure(plan.apiMicros)} µs`],
  ['batches /view', ({ plan }) => figure(plan.batchesPerView)],
  ['share of the fullest primary', ({ plan }) => percent(plan.fullestShare)],
  ['sessions of a partition', ({ plan }) => whole(plan.sessionsPerPartition)],
  ['time that the move of a slot blocks a node', ({ plan }) => milliseconds(plan.stallMs)],
]

function firstText({ plan: { runsOutFirst, use, hottestItem } }: Planned): string {
  const share = runsOutFirst === 'one item' ? hottestItem : use[runsOutFirst]
  return `${runsOutFirst}, ${percent(share)} of the planned maximum`
}

/** The plan for one size. */
export const needsOf = (planned: Planned): Table => ({
  ...{ caption: 'Required capacity', head: ['resource', 'amount'], texts: [0, 1] },
  rows: [...needs, ...more].map(([what, text]) => [what, text(planned)]),
})

/** The plans for several sizes, one line each. */
export const needsOfAll = (all: readonly Planned[]): Table => ({
  caption: 'Required capacity',
  head: needs.map(([what]) => what),
  rows: all.map((planned) => needs.map(([, text]) => text(planned))),
  texts: [needs.length - 1],
})

/** The time that the move of a slot blocks a node, with the fewest partitions and with the recommended number. */
function partitionTable(all: readonly Planned[], { measured }: Known): Table {
  const blocks = (sessions: number) => milliseconds(interpolate(measured.stallMs, sessions))
  return {
    caption: 'Partitions, and the time that the move of a partition blocks a node',
    head: [
      'sessions',
      ...[`in each of ${MIN_PARTITIONS}`, 'larger key', 'a move blocks'],
      ...['recommended partitions', 'in each', 'a move blocks'],
    ],
    rows: all.map(({ size: { sessions }, plan }) => {
      const few = Math.ceil(sessions / MIN_PARTITIONS)
      return [
        ...[whole(sessions), whole(few)],
        ...[`${figure(interpolate(measured.payloadMb, few))} MB`, blocks(few)],
        ...[whole(plan.partitions), whole(plan.sessionsPerPartition)],
        blocks(plan.sessionsPerPartition),
      ]
    }),
    texts: [],
  }
}

export const inputTable = ({ inputs }: Known): Table => ({
  caption: 'Parameters of the model',
  head: ['measured', 'value', 'in load/results', 'on'],
  rows: inputs.map(({ what, value, unit, file, date }) => [
    what,
    `${figure(value)} ${unit}`.trim(),
    file,
    date.slice(0, 10),
  ]),
  texts: [0, 2, 3],
})

const difference = (predicted: number, measured: number) => {
  const percents = (predicted / measured - 1) * 100
  return `${percents < 0 ? '-' : '+'}${Math.abs(percents).toFixed(1)} %`
}

/** Compares predicted and measured memory of Redis servers that are larger than those of the model's parameters. */
export function memoryCheck(known: Known, rows: Rows = known.rows['memory.json']): Table {
  const ofModel = rows.where({ items: 0 }).values('sessions').map(Number)
  return {
    caption: 'Memory: predicted from small data sets, and measured',
    head: ['sessions', 'items viewed by each', 'predicted', 'measured', 'difference'],
    rows: rows.all.flatMap((row) => {
      const [sessions, items] = [Number(row.case.sessions), Number(row.case.items)]
      const bytes = row.median('bytes')
      if (sessions <= Math.max(...ofModel) || bytes === null) return []
      const size = { sessions, itemsPerSession: items, dataBytes: 0, items: 1_000 }
      const predicted = memoryOf(size, known.measured, true)
      const texts = [predicted, bytes].map((value) => withPrefix(value, 'B'))
      return [[whole(sessions), whole(items), ...texts, difference(predicted, bytes)]]
    }),
    texts: [],
  }
}

/** Predicted and measured CPU time of clusters. The prediction is from one node. */
const clustersOf = ({ measured }: Known, rows: Rows) =>
  rows.all.flatMap((row) => {
    const nodes = Number(row.case.nodes)
    const alone = rows.find({ ...row.case, nodes: 1 })?.median('batches')
    const main = row.median('mainCpuMicros')
    if (nodes < 2 || !alone || !main) return []
    const batches = batchesPerView(nodes, 1 / alone)
    const predicted = valueAt(measured.plain.main, batches) / nodes
    return [{ row, batches, predicted, mean: main / nodes }]
  })

/** Compares predicted and measured CPU time of clusters. */
export const cpuCheck = (known: Known, rows = known.rows['cluster.json']): Table => ({
  caption: "CPU time of a node's main thread per view: predicted from one node, and measured",
  head: [
    ...['nodes', 'views in flight', 'batches /view predicted', 'measured'],
    ...['µs /view predicted', 'measured, mean', 'difference', 'busiest node'],
  ],
  rows: clustersOf(known, rows).map(({ row, batches, predicted, mean }) => {
    const text = (metric: string) => figure(row.median(metric) ?? Number.NaN)
    return [
      ...[String(row.case.nodes), String(row.case.inFlight), figure(batches), text('batches')],
      ...[figure(predicted), figure(mean), difference(predicted, mean), text('busiestMicros')],
    ]
  }),
  texts: [],
})

/** A sentence about the differences in `cpuCheck`; none without clusters. */
export function accuracyOf(known: Known, rows = known.rows['cluster.json']): string[] {
  const ratios = clustersOf(known, rows).map(({ predicted, mean }) => predicted / mean)
  if (ratios.length === 0) return []
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((one) => difference(one, 1))
  return [`The predicted CPU time differs from the measured one by ${least} to ${most}.`]
}

/** Sentences about extrapolations and other limits of the plans. */
export function extrapolations(
  all: readonly Planned[],
  { coresPerNode }: Machines,
  { range }: Known,
): string[] {
  const most = (of: (planned: Planned) => number) => Math.max(...all.map(of))
  return [
    most(({ size }) => size.sessions) > range.sessions &&
      `Memory was measured up to ${whole(range.sessions)} sessions; more are extrapolated.`,
    most(({ plan }) => plan.primaries) > range.nodes &&
      `CPU time was measured up to ${range.nodes} nodes; more are extrapolated.`,
    most(({ plan }) => plan.sessionsPerPartition) > range.sessionsOfPartition &&
      `Moves were measured up to ${whole(range.sessionsOfPartition)} sessions of a partition; more are extrapolated.`,
    hasIoThreads(coresPerNode) && 'I/O threads were measured with single SETs, not with views.',
    most(({ plan }) => plan.replicas) > 0 &&
      'The CPU time of replication was not measured. Its network traffic is assumed to be that of the views.',
    most(({ plan }) => plan.hottestItem) > 1 &&
      'One main thread counts all views of the most viewed item. It has too little time for them, and more nodes do not help.',
    most(({ plan }) => plan.primaries + plan.replicas) > 1_000 &&
      'Redis advises against clusters of more than 1,000 nodes. Use several clusters.',
    all.some(({ plan }) => plan.partitions === MAX_PARTITIONS) &&
      `The number of partitions is limited to ${whole(MAX_PARTITIONS)}, the number of slots of a cluster.`,
  ].flatMap((text) => text || [])
}

/** Seconds between two page views of a session: 100 million sessions make 2 million views per second. */
export const SECONDS_PER_VIEW = 50

export const defaults = { items: 100_000, itemsPerSession: 5, dataBytes: 0 }

/** The sizes in docs/scaling.md. */
const sizes = [1e3, 1e6, 1e8, 1e9]

export const documentedPlans = (
  { measured }: Known,
  machines = machineDefaults,
  data = defaults,
): Planned[] =>
  sizes.map((sessions) => {
    const size = { ...data, sessions, viewsPerSecond: sessions / SECONDS_PER_VIEW }
    return { size, plan: planFor(size, machines, measured) }
  })

/** The tables and claims of docs/scaling.md, in the order of its marks. */
export function documented(known: Known) {
  const plans = documentedPlans(known)
  return {
    tables: [
      needsOfAll(plans),
      partitionTable(plans, known),
      memoryCheck(known),
      cpuCheck(known),
      inputTable(known),
    ],
    claims: extrapolations(plans, machineDefaults, known),
    accuracy: accuracyOf(known),
  }
}
