import { across, errors, fromArticles, marked, range, ratio } from '../../../reporting/columns.ts'
import { figure, percent, withRange } from '../../../rounds/figures.ts'
import type { Result } from '../../../rounds/result.ts'
import type { Row, Rows } from '../../../rounds/rows.ts'
import type { Section } from '../../../rounds/section.ts'

const RATE = 'perSecond'

// Redis双核架构实测QPS, tables 3.1 and 3.2; Redis 6.2.6, 24 cores. Memtier sent SET and GET in turn, so the means of
// their table over all commands are those of MIX. In %: CPU time in user mode, use of the network, latency classes.
const ofArticles = {
  SET: { 1: 85_200, 4: 210_300 },
  GET: { 1: 87_500, 4: 215_800 },
  MGET: { 1: 42_100, 4: 68_700 },
  LPUSH: { 1: 78_900, 4: 195_400 },
  MIX: { 1: 86_200, 2: 165_400, 4: 210_300, 8: 208_700 },
}
const gainsInArticles = Object.fromEntries(
  Object.entries<Record<number, number>>(ofArticles).map(([command, { 1: one = 1, ...more }]) => [
    command,
    Object.fromEntries(Object.entries(more).map(([threads, rate]) => [threads, rate / one])),
  ]),
)
const userInArticles = { MIX: { 1: 92, 2: 85, 4: 78, 8: 76 } }
const networkInArticles = { MIX: { 1: 68, 2: 82, 4: 95, 8: 96 } }
// Their table names one thread and "two cores"; their other tables compare one thread with four.
const below1InArticles = { MIX: { 1: 89, 4: 97 } }
const above2InArticles = { MIX: { 1: 3, 4: 1 } }

/** With more rows, the terminal shows the summary only. */
const MANY = 40

export function sectionsOf(rows: Rows, { options, machine }: Result): Section[] {
  const { connections, pipeline, bytes, rate } = options
  const fixed = rate === undefined ? '' : `, ${figure(Number(rate))} commands/s in all`
  const load = `${connections} long connections over TCP${fixed}`
  // Values of 100 B and no pipeline, with the 400 connections of their command or the 100 of their text.
  const isAsInArticles = /^100 1 (100|400)$/.test([bytes, pipeline, connections].join(' '))
  const figures = (head: string, all: Parameters<typeof fromArticles>[1]) =>
    fromArticles(head, all, 'command', 'threads')
  const asInArticles: Section = {
    title: 'As in the articles',
    caption: `${load}, ${machine.cores} cores for Redis and the load`,
    columns: [
      range(RATE),
      figures('articles commands/s', ofArticles),
      ratio(RATE, '× off'),
      figures('articles × off', gainsInArticles),
      range('userMicros'),
      range('kernelMicros'),
      { head: 'user mode, of CPU time', cell: userShare },
      figures('articles user %', userInArticles),
      'networkPerSecond',
      figures('articles network %', networkInArticles),
      'below1',
      figures('articles below 1 ms %', below1InArticles),
      'above2',
      figures('articles over 2 ms %', above2InArticles),
    ],
  }
  return [
    ...(isAsInArticles ? [asInArticles] : []),
    summary(rows, load),
    {
      title: 'Every setting',
      isDetail: rows.all.length > MANY,
      caption: `Every setting: ${load}. Latencies are those of whole pipelines`,
      columns: [
        range(RATE),
        'p50',
        'p90',
        'p99',
        'below1',
        'above2',
        range('mainCpuMicros'),
        range('cpuMicros'),
        errors,
      ],
    },
  ]
}

const userShare = (row: Row) =>
  percent((row.median('userMicros') ?? Number.NaN) / (row.median('cpuMicros') ?? Number.NaN))

/** A line for each load, with columns for the settings: measured ratios of rates, and extrapolated rates. */
function summary(all: Rows, load: string): Section {
  const rows = all.filter((row) => row.baseline(all) === row)
  const [fewest = 1] = rows.values('threads')
  const more = all.values('threads').filter((threads) => threads !== fewest)
  const cases = (head: (threads: string | number) => string, settings = more) =>
    Object.fromEntries(settings.map((threads) => [head(threads), { threads }]))
  return {
    title: 'Gains and losses with I/O threads',
    rows: rows.filter(() => more.length > 0),
    caption: `Ratios of rates by the setting of io-threads: ${load}. Ceilings are EXTRAPOLATED from CPU time, as if each thread had a core of its own and the clients others`,
    factors: rows.varying.filter((name) => name !== 'threads'),
    columns: [
      {
        head: `commands/s with ${fewest}`,
        cell: (row) => marked(row, withRange(row.summary(RATE))),
      },
      ...across(
        all,
        cases((threads) => `× with ${threads} (range)`),
        ratio(RATE, ''),
      ),
      ...across(
        all,
        cases((threads) => `ceiling with ${threads}`, [fewest, ...more]),
        { cell: ceilingOf },
      ),
    ],
  }
}

/**
 * Commands per second if each thread had its own core: the main thread and the I/O threads work at the same time, and
 * the slower side limits the rate.
 */
function ceilingOf(row: Row): string {
  const main = row.median('mainCpuMicros') ?? Number.NaN
  const io = (row.median('cpuMicros') ?? Number.NaN) - main
  const ofEach = Number(row.case.threads) > 1 ? io / (Number(row.case.threads) - 1) : 0
  return figure(1e6 / Math.max(main, ofEach))
}
