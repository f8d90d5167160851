import { join } from 'node:path'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { ioThreadsFor } from '../../../apps/server-build/src/io-threads.ts'
import { type Row, Rows } from '../experiment/rows.ts'
import type { Case } from '../experiment/shape.ts'
import { NO_CLUSTER } from '../experiments/cluster/cluster.ts'
import { readResult } from '../reporting/files.ts'
import { type Measurements, machineDefaults, type Threads } from './model.ts'
import { lineThrough, type Points } from './points.ts'

/** The results that the model needs, with the arguments of `npm run load --` that create them. */
export const sources = {
  'http-views.json': 'http --reads 0 --sessions 1000 --variants batch',
  'cluster.json': 'cluster',
  'io-threads.json': 'io-threads',
  'memory.json': 'memory',
  'slot-move.json': 'slot-move',
} as const

type File = keyof typeof sources

interface Source {
  file: File
  /** The date of the measurement, in ISO 8601. */
  date: string
}

/** A parameter of the model and its source. */
interface Input extends Source {
  what: string
  value: number
  unit: string
}

export interface Known {
  measured: Measurements
  inputs: Input[]
  /** The largest measured values. */
  range: { sessions: number; nodes: number; sessionsOfPartition: number }
  rows: Readonly<Record<File, Rows>>
}

/**
 * Reads the parameters of the model from results.
 *
 * @param folder with the results: load/results.
 * @param coresPerNode decides the number of I/O threads.
 * @throws Problem when a result is missing or incomplete. The message has the command that creates it.
 */
export async function readMeasurements(
  folder: string,
  coresPerNode = machineDefaults.coresPerNode,
): Promise<Known> {
  const read = async <Name extends File>(file: Name) => {
    const { experiment, result } = await readResult(join(folder, file)).catch((error: unknown) => {
      throw new Problem(`${messageOf(error)} ${howToMake(file)}`)
    })
    return { file, date: result.date, rows: Rows.of(experiment, result.samples) }
  }
  const http = await read('http-views.json')
  const cluster = await read('cluster.json')
  const io = await read('io-threads.json')
  const memory = await read('memory.json')
  const slots = await read('slot-move.json')

  const views = rowOf(http, { variant: 'batch' })
  const clusters = cluster.rows.filter(({ case: { nodes } }) => Number(nodes) > 0)
  const fewest = Math.min(...clusters.values('nodes').map(Number))
  const line = (metric: string, rows = clusters) =>
    lineThrough(pointsOf({ ...cluster, rows }, {}, ['batches', metric]))
  const ofOneNode = clusters.where({ nodes: fewest })
  const plain = {
    main: line('mainCpuMicros', ofOneNode),
    others: line('otherCpuMicros', ofOneNode),
  }
  const threads = ioThreadsIn(io, coresPerNode)
  const sizes = memory.rows.values('sessions').map(Number)
  const small = Math.min(...sizes.filter((count) => count > 1))
  const bytesOfSlots = lineThrough(
    pointsOf(memory, { items: 0, dataBytes: 0 }, ['sessions', 'bytes']),
  ).constant
  const perSession = (part: Partial<Case>, factor: string): Points =>
    pointsOf(memory, { sessions: small, ...part }, [factor, 'bytes']).map(([x, bytes]) => [
      x,
      (bytes - bytesOfSlots) / small,
    ])
  const counted = rowOf(memory, { sessions: 1 })
  /** Combines a metric of both keys of a partition. */
  const ofKeys = (metric: string, join: (...values: number[]) => number): Points => {
    const [first = [], ...others] = slots.rows
      .values('key')
      .map((key) => pointsOf(slots, { key }, ['fields', metric]))
    const joined = first.flatMap(([fields, value]): Points => {
      const same = others.flatMap((points) => points.find(([at]) => at === fields)?.[1] ?? [])
      return same.length === others.length ? [[fields, join(value, ...same)]] : []
    })
    return [[0, 0], ...joined]
  }
  const measured: Measurements = {
    apiMicros: need(http, views, 'apiCpuMicros'),
    viewsPerBatch: 1 / need(http, views, 'roundTrips'),
    plain,
    threaded: withIoThreads(plain, io, threads),
    clientOfOne: need(cluster, rowOf(cluster, { nodes: NO_CLUSTER }), 'clientCpuMicros'),
    ...{ client: line('clientCpuMicros'), bytesIn: line('bytesIn'), bytesOut: line('bytesOut') },
    commandsPerView: Math.max(...cluster.rows.all.map((row) => need(cluster, row, 'commands'))),
    bytesOfSlots,
    bytesByItems: perSession({ dataBytes: 0 }, 'items'),
    bytesByData: perSession({ items: 0 }, 'dataBytes'),
    bytesPerItem: need(memory, counted, 'bytes') / Number(counted.case.items),
    // redis-cli moves several keys with one command, so the stalls of both keys add up.
    stallMs: ofKeys('sourceMs', (...values) => values.reduce((sum, one) => sum + one, 0)),
    payloadMb: ofKeys('megabytes', Math.max),
  }
  return {
    measured,
    inputs: inputsOf(measured, threads, { http, cluster, io, memory, slots }),
    range: {
      sessions: Math.max(...sizes),
      nodes: Math.max(...cluster.rows.values('nodes').map(Number)),
      sessionsOfPartition: measured.stallMs.at(-1)?.[0] ?? 0,
    },
    rows: {
      ...{ 'http-views.json': http.rows, 'cluster.json': cluster.rows, 'io-threads.json': io.rows },
      ...{ 'memory.json': memory.rows, 'slot-move.json': slots.rows },
    },
  }
}

interface Found extends Source {
  rows: Rows
}

const sets = { command: 'SET', build: 'patched' }

/** The measured number of I/O threads that is nearest to what Onetrip sets for a node; 1 means off. */
function ioThreadsIn(io: Found, cores: number): number {
  const wanted = ioThreadsFor(cores)
  const distance = (threads: number) => Math.abs(threads - wanted)
  const [nearest = wanted] = io.rows
    .where(sets)
    .values('threads')
    .map(Number)
    .filter((threads) => threads > 1)
    .toSorted((a, b) => distance(a) - distance(b))
  return wanted === 1 ? 1 : nearest
}

/**
 * The CPU time of a node with I/O threads. I/O threads take over a part of the cost of each batch (reading and
 * writing); the cost of its commands stays in the main thread. The part was measured with one SET per batch.
 */
function withIoThreads({ main, others }: Threads, io: Found, threads: number): Threads {
  if (threads === 1) return { main, others }
  const [off, on] = [rowOf(io, { ...sets, threads: 1 }), rowOf(io, { ...sets, threads })]
  const times = (metric: string) => {
    const ratio = on.ratio(metric, off)
    if (ratio) return ratio.mean
    throw new Problem(`${io.file} has no ${metric} with ${threads} threads. ${howToMake(io.file)}`)
  }
  const ofMain = main.slope * times('mainCpuMicros')
  const ofAll = (main.slope + others.slope) * times('cpuMicros')
  return { main: { ...main, slope: ofMain }, others: { ...others, slope: ofAll - ofMain } }
}

const howToMake = (file: File) =>
  `npm run capacity needs this result. To create it: npm run load -- ${sources[file]} --json load/results/${file}`

function rowOf({ file, rows }: Found, part: Partial<Case>): Row {
  const row = rows.find(part)
  if (row) return row
  throw new Problem(`${file} has no case ${JSON.stringify(part)}. ${howToMake(file)}`)
}

function need({ file }: Found, row: Row, metric: string): number {
  const value = row.median(metric)
  if (value !== null) return value
  throw new Problem(`${file} has no ${metric} for ${JSON.stringify(row.case)}. ${howToMake(file)}`)
}

/** Medians of metric `y` over `x`, a factor or another metric. Rows without a value are omitted. */
function pointsOf(found: Found, part: Partial<Case>, [x, y]: readonly [string, string]): Points {
  const points = found.rows.where(part).all.flatMap((row): Points => {
    const at = row.case[x] ?? row.median(x)
    const value = row.median(y)
    return typeof at === 'number' && value !== null ? [[at, value]] : []
  })
  if (points.length > 1) return points.toSorted(([a], [b]) => a - b)
  throw new Problem(`${found.file} has no ${y} by ${x}. ${howToMake(found.file)}`)
}

function inputsOf(
  { apiMicros, viewsPerBatch, plain, threaded: { main, others }, ...of }: Measurements,
  threads: number,
  {
    http,
    cluster,
    io,
    memory,
    slots,
  }: Record<'http' | 'cluster' | 'io' | 'memory' | 'slots', Found>,
): Input[] {
  const from = ({ file, date }: Found, what: string, value: number, unit: string): Input => ({
    ...{ what, value, unit, file, date },
  })
  const line = (
    what: string,
    { constant, slope }: { constant: number; slope: number },
    unit: string,
  ) => [
    from(cluster, `${what}, per view`, constant, unit),
    from(cluster, `${what}, per batch`, slope, unit),
  ]
  const perBatch = `${threads} I/O threads, per batch`
  const [nothing, ...more] = of.bytesByItems
  const perItem = more.at(-1)
  return [
    from(http, 'CPU of the API with one Redis, per view', apiMicros, 'µs'),
    from(http, 'views per batch at full speed', viewsPerBatch, ''),
    from(cluster, 'CPU of the client with one Redis, per view', of.clientOfOne, 'µs'),
    ...line('CPU of the client with a cluster', of.client, 'µs'),
    ...line("CPU of Redis's main thread", plain.main, 'µs'),
    ...line('CPU of its other threads', plain.others, 'µs'),
    ...(threads > 1
      ? [
          from(io, `CPU of Redis's main thread with ${perBatch}`, main.slope, 'µs'),
          from(io, 'CPU of I/O and other threads, per batch', others.slope, 'µs'),
        ]
      : []),
    ...line('bytes to Redis', of.bytesIn, 'B'),
    ...line('bytes from Redis', of.bytesOut, 'B'),
    from(memory, 'memory of the slots of a cluster', of.bytesOfSlots, 'B'),
    from(memory, 'memory of a session without views', nothing?.[1] ?? 0, 'B'),
    from(memory, `memory of a session with ${perItem?.[0]} items viewed`, perItem?.[1] ?? 0, 'B'),
    from(memory, 'memory of the count of an item', of.bytesPerItem, 'B'),
    ...of.stallMs.slice(1).map(([sessions, ms]) => {
      const what = `time that the move of ${sessions.toLocaleString('en-US')} sessions blocks the source`
      return from(slots, what, ms, 'ms')
    }),
  ]
}
