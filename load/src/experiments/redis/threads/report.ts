import { figure, percent, withRange, withRatioRange } from '../../../experiment/figures.ts'
import type { Result } from '../../../experiment/result.ts'
import type { Row, Rows } from '../../../experiment/rows.ts'
import type { Section } from '../../../experiment/section.ts'
import type { Ratio } from '../../../experiment/statistics.ts'
import {
  type Column,
  errors,
  fromArticles,
  marked,
  median,
  range,
  sectionOf,
} from '../../../reporting/columns.ts'

const RATE = 'perSecond'

// A gain or loss is a rate that differs by 10 % or more in every round.
const [GAIN, LOSS] = [1.1, 0.9]
const gains = ({ ratio, isSure }: Compared) => isSure && ratio !== null && ratio.min >= GAIN
const loses = ({ ratio, isSure }: Compared) => isSure && ratio !== null && ratio.max <= LOSS

// Redis双核架构实测QPS, tables 3.1 and 3.2; Redis 6.2.6, 24 cores. Memtier sent SET and GET in turn, so the means of their table over all commands are those of
// MIX. In %: the CPU time in user mode, and the use of the network.
const ofArticles = {
  SET: { 1: 85_200, 4: 210_300 },
  GET: { 1: 87_500, 4: 215_800 },
  MGET: { 1: 42_100, 4: 68_700 },
  LPUSH: { 1: 78_900, 4: 195_400 },
  MIX: { 1: 86_200, 2: 165_400, 4: 210_300, 8: 208_700 },
}
const userInArticles = { MIX: { 1: 92, 2: 85, 4: 78, 8: 76 } }
const networkInArticles = { MIX: { 1: 68, 2: 82, 4: 95, 8: 96 } }

/** Whether the options are those of the source articles: values of 100 B, 400 connections, no pipeline. */
const isAsInArticles = ({ options: { bytes, pipeline, connections } }: Result) =>
  [bytes, pipeline, connections].join(' ') === '100 1 400'

/** With more rows, the terminal shows the summaries only. */
const MANY = 40

/** A row and its baseline, the same case with the fewest threads. */
interface Compared {
  row: Row
  base: Row
  threads: number
  ratio: Ratio | null
  /** Whether both rows are undisturbed. Other programs slow down one thread more than several. */
  isSure: boolean
  /** CPU time of the main thread per command, in microseconds. */
  main: number
  /** CPU time of all I/O threads per command, in microseconds. */
  io: number
  /**
   * The extrapolated ratio to the rate without I/O threads, if each thread had its own core: the main thread and the
   * I/O threads work at the same time, and the slower side limits the rate. NaN with fewer than two connections per
   * thread, because an I/O thread serves whole connections.
   */
  times: number
}

function comparedOf(rows: Rows, { options: { connections } }: Result): Compared[] {
  return rows.all.flatMap((row) => {
    const base = row.baseline(rows)
    if (!base || base === row) return []
    const threads = Number(row.case.threads)
    const main = row.median('mainCpuMicros') ?? Number.NaN
    const io = (row.median('cpuMicros') ?? Number.NaN) - main
    const hasBasis = base.case.threads === 1 && Number(connections) >= 2 * threads
    const one = (hasBasis && base.median('mainCpuMicros')) || Number.NaN
    const times = one / Math.max(main, io / (threads - 1))
    const isSure = !row.isDisturbed && !base.isDisturbed
    return { row, base, threads, main, io, times, isSure, ratio: row.ratio(RATE, base) }
  })
}

export function sectionsOf(rows: Rows, result: Result): Section[] {
  const { options } = result
  const rate =
    options.rate === undefined ? '' : `, ${figure(Number(options.rate))} commands/s in all`
  const load = `${options.connections} long connections over TCP${rate}`
  const every = sectionOf(rows, {
    title: 'Every setting',
    isDetail: rows.all.length > MANY,
    caption: `Every setting: ${load}. Latencies are those of whole pipelines`,
    columns: [
      range(RATE, rows),
      'below1',
      'above2',
      'p99',
      range('mainCpuMicros', rows),
      'cpuMicros',
      errors,
    ],
  })
  if (!isAsInArticles(result)) return [...summaries(rows, result, load), every]
  const figures = (head: string, all: typeof ofArticles | typeof userInArticles) =>
    fromArticles(head, all, 'command', 'threads')
  const userShare = (row: Row) =>
    percent((row.median('userMicros') ?? Number.NaN) / (row.median('cpuMicros') ?? Number.NaN))
  const asInArticles = sectionOf(rows, {
    title: 'As in the source articles',
    caption: `${load}, ${result.machine.cores} cores for Redis and the load`,
    columns: [
      range(RATE, rows),
      figures('articles commands/s', ofArticles),
      'userMicros',
      'kernelMicros',
      { head: 'user mode, of CPU time', cell: userShare },
      figures('articles user %', userInArticles),
      'networkPerSecond',
      figures('articles network %', networkInArticles),
      'below1',
      'above2',
    ],
  })
  return [asInArticles, ...summaries(rows, result, load), every]
}

/** Two tables, measured and extrapolated, with a line for each load and columns for the settings. */
function summaries(rows: Rows, result: Result, load: string): Section[] {
  const compared = comparedOf(rows, result)
  const settings = [...new Set(compared.map(({ threads }) => threads))].toSorted((a, b) => a - b)
  const base = rows.filter((row) => compared.some((one) => one.base === row))
  const [fewest] = base.values('threads')
  if (fewest === undefined) return []
  const factors = base.varying.filter((name) => name !== 'threads')
  const of = (row: Row) => compared.filter((one) => one.base === row)
  const each = (head: (threads: number) => string, text: (one: Compared) => string) =>
    settings.map((threads): Column => {
      const find = (row: Row) => of(row).filter((one) => one.threads === threads)
      return { head: head(threads), cell: (row) => find(row).map(text).join() }
    })
  const verdict = (row: Row) =>
    Object.entries({ gains: of(row).filter(gains), loses: of(row).filter(loses) })
      .filter(([, all]) => all.length > 0)
      .map(([verb, all]) => `${verb} with ${all.map(({ threads }) => threads).join(', ')}`)
      .join('; ')
  const measured = sectionOf(base, {
    title: 'Gains and losses with I/O threads',
    caption: `Ratio of rates by the setting of io-threads: ${load}`,
    factors,
    columns: [
      {
        head: `commands/s with ${fewest}`,
        cell: (row) => marked(row, withRange(row.summary(RATE))),
      },
      ...each(
        (threads) => `× with ${threads} (range)`,
        ({ row, ratio }) => marked(row, withRatioRange(ratio)),
      ),
      { head: 'measured', isText: true, cell: verdict },
    ],
  })
  if (!compared.some(({ times }) => times > 0)) return [measured]
  const extrapolated = sectionOf(base, {
    title: 'Number of cores for a gain (extrapolated)',
    caption: `EXTRAPOLATED from CPU time per command, as if each thread had its own core, and the clients others; ${GAIN} times the rate counts as a gain`,
    factors,
    columns: [
      median('mainCpuMicros', base, 'main thread CPU µs, off'),
      ...each(
        (threads) => `main + I/O threads CPU µs, ${threads}`,
        ({ main, io }) => `${figure(main)} + ${figure(io)}`,
      ),
      {
        head: "should gain from (cores of Redis's own)",
        cell: (row) => String(firstGain(of(row)) ?? 'none of these'),
      },
      {
        head: 'should gain at most',
        cell: (row) => extrapolatedOf(of(row)).slice(0, 1).map(timesText).join(),
      },
    ],
  })
  return [measured, extrapolated]
}

/** The rows with an extrapolation, the largest gain first. */
const extrapolatedOf = (all: readonly Compared[]): Compared[] =>
  all.filter(({ times }) => times > 0).toSorted((a, b) => b.times - a.times)
const shouldGain = ({ times }: Compared) => times >= GAIN
const timesText = ({ times, threads }: Compared) => `${figure(times)} times with ${threads}`

/** The smallest setting with an extrapolated gain. */
const firstGain = (all: readonly Compared[]): number | undefined =>
  all
    .filter(shouldGain)
    .map(({ threads }) => threads)
    .toSorted((a, b) => a - b)[0]
