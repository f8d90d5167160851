import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Profile } from '../../../drivers/redis/profile.ts'
import { figure, percent } from '../../../experiment/figures.ts'
import type { Result } from '../../../experiment/result.ts'
import type { Row, Rows } from '../../../experiment/rows.ts'
import type { Section } from '../../../experiment/section.ts'
import {
  type Column,
  errors,
  fromArticles,
  median,
  range,
  ratio,
  sectionOf,
} from '../../../reporting/columns.ts'
import { articleShapes } from '../settings.ts'
import { shapeOf } from './shapes.ts'

// The loads, in addition to those of the source articles.
export const SHORT = 'short'
export const LONG = 'long'
export const BESIDE = 'long beside short'

// Redis短连接性能优化 (ApsaraDB): redis-benchmark -k 0 -t get -n 100000 -c 8000; 张鹏义, Tencent Cloud:
// redis-benchmark -t ping -c 10000 -n 500000, Redis 4.0.10.
const articles = {
  'get-8000': { 'redis-benchmark': { baseline: 10_065, stock: 13_824 } },
  'ping-10000': { 'redis-benchmark': { baseline: 16_472, stock: 21_455 } },
  'ping-10000-kept': { 'redis-benchmark': { stock: 93_580 } },
}

export function sectionsOf(rows: Rows, { options }: Result): Section[] {
  const short = rows.where({ load: SHORT })
  const long = rows.filter(({ case: { load } }) => load === LONG || load === BESIDE)
  const rates = rows.where({ load: 'rates' })
  const burst = rows.where({ load: 'burst' })
  const halfClose = rows.where({ load: 'half-close' })
  const traced = short.filter((row) => row.median('systemCalls') !== null)
  return [
    stepsSection(short),
    sectionOf(short, {
      title: 'Short connections',
      caption: `${options.connections} concurrent short connections: connect, GET, read the reply, close`,
      columns: [
        range('mainCpuMicros', short, 'main thread CPU µs /connection'),
        ratio('mainCpuMicros', '× stock'),
        median('cpuMicros', short, 'all threads CPU µs /connection'),
        median('instructions', short, 'instructions /connection'),
        ratio('instructions', 'instructions × stock'),
        'systemCalls',
        range('perSecond', short, 'connections/s'),
        'p99',
        errors,
      ],
    }),
    sectionOf(long, {
      title: 'Long connections',
      caption: `${options.long} long connections, one GET after another, without and with ${options.connections} short connections`,
      columns: [
        range('perSecond', long),
        range('p50', long),
        range('p99', long),
        range('mainCpuMicros', long),
        ratio('mainCpuMicros', 'CPU × stock'),
        ratio('instructions', 'instructions × stock'),
      ],
    }),
    ...articleShapes.map((load) => {
      const own = rows.where({ load })
      return sectionOf(own, {
        title: `The source articles' ${load}`,
        caption: `redis-benchmark ${shapeOf(load, Number(options.requests) || undefined).args}, and our generator with the same load`,
        columns: [
          range('perSecond', own, 'requests/s'),
          ratio('perSecond', '× stock'),
          fromArticles('articles requests/s', articles, 'load', 'tool', 'build'),
          range('mainCpuMicros', own, 'main thread CPU µs /request'),
          ratio('mainCpuMicros', 'CPU × stock'),
          'max',
          errors,
        ],
      })
    }),
    sectionOf(rates, {
      title: 'At low rates',
      caption: 'Short connections at a constant rate; several clients connect at the same moment',
      columns: [
        median('cpuMicros', rates, 'all threads CPU µs /connection'),
        ratio('cpuMicros', '× stock'),
        median('mainCpuMicros', rates, 'main thread CPU µs /connection'),
        ratio('mainCpuMicros', 'main thread × stock'),
        'p50',
        'p99',
        errors,
      ],
    }),
    sectionOf(burst, {
      title: 'A burst of clients while another client runs commands of 10 ms',
      caption: 'Time from connecting to the reply',
      columns: [range('p50', burst), range('p99', burst), errors],
    }),
    sectionOf(halfClose, {
      title: 'Clients that shut down their sending side',
      caption: 'Time until they see the end of the connection',
      columns: [range('p50', halfClose), range('p99', halfClose)],
    }),
    sectionOf(traced, {
      title: 'System calls of the main thread',
      isDetail: true,
      caption: 'System calls of the main thread per short connection, by name',
      columns: [median('systemCalls', traced, 'all'), ...callsByName(traced)],
    }),
    profileSection(short),
  ].filter(({ tables: [table] }) => table?.rows.length)
}

const patches = fileURLToPath(new URL('../../../../../apps/server-build/patches', import.meta.url))

/** The name of the last patch of a build such as `patched@0005`. */
function lastPatch({ case: { build } }: Row): string {
  const [, number] = String(build).split('@')
  const file = number && readdirSync(patches).find((name) => name.startsWith(`${number}-`))
  return file ? basename(file, '.patch').slice(`${number}-`.length).replaceAll('-', ' ') : ''
}

/** The effect of each patch: a line for each build, with columns for the numbers of I/O threads. */
function stepsSection(short: Rows): Section {
  const steps = short.filter((row) => lastPatch(row) !== '').all
  const isStepByStep = steps.length > 0 && short.groups('build', 'threads').length === 1
  const [first, ...more] = short.by('threads')
  const cpu = median('mainCpuMicros', short, 'main thread CPU µs')
  const columns = [
    cpu,
    ratio('mainCpuMicros', '× stock'),
    ratio('instructions', 'instructions × stock'),
    median('systemCalls', short),
  ]
  const withThreads = more.flatMap(({ value, rows }) =>
    columns.map(({ head, cell }) => ({
      head: `${head}, ${value} I/O threads`,
      cell: (row: Row) => {
        const other = rows.find({ ...row.case, threads: value })
        return other ? cell(other, rows) : '-'
      },
    })),
  )
  return sectionOf(isStepByStep && first ? first.rows : short.filter(() => false), {
    title: 'Patch by patch',
    caption: 'Cost of a short connection in builds with the patches up to the named one',
    factors: ['build'],
    columns: [
      { head: 'its last patch', isText: true, cell: lastPatch },
      ...columns,
      ...withThreads,
    ],
  })
}

/** Functions with a smaller share of the samples are not shown. */
const SHOWN_SHARE = 0.02

function profileSection(short: Rows): Section {
  const sampled = short.filter((row) => profilesOf(row).length > 0)
  return sectionOf(sampled, {
    title: 'Where the CPU time of the main thread goes',
    isDetail: true,
    caption: `CPU time of the main thread by function, for functions with ${percent(SHOWN_SHARE)} or more`,
    columns: [
      { head: 'kernel', cell: (row) => percent(meanShares(row).kernel ?? 0) },
      { head: 'listSearchKey', cell: (row) => percent(meanShares(row)[SEARCH] ?? 0) },
      { head: 'other functions', isText: true, cell: otherFunctions },
    ],
  })
}

/** The function that the source articles identified. */
const SEARCH = 'listSearchKey'

const profilesOf = ({ samples }: Row) =>
  samples.flatMap<Profile>(({ details }) => (details?.profile as Profile) ?? [])

/** Means over the rounds. */
function meanShares(row: Row): Profile {
  const profiles = profilesOf(row)
  const names = new Set(profiles.flatMap((profile) => Object.keys(profile)))
  const mean = (name: string) =>
    profiles.reduce((sum, profile) => sum + (profile[name] ?? 0), 0) / profiles.length
  return Object.fromEntries([...names].map((name) => [name, mean(name)]))
}

function otherFunctions(row: Row): string {
  const others = Object.entries(meanShares(row)).filter(
    ([name, share]) => name !== 'kernel' && name !== SEARCH && share >= SHOWN_SHARE,
  )
  const byShare = others.toSorted(([, a], [, b]) => b - a)
  return byShare.map(([name, share]) => `${name} ${percent(share)}`).join(', ')
}

/** A column for each frequent system call, with the counts of the first traced run. */
function callsByName(rows: Rows): Column[] {
  const callsOf = (row: Row) => {
    const traced = row.samples.find(({ details }) => details?.systemCalls)
    return (traced?.details?.systemCalls ?? {}) as Readonly<Record<string, number>>
  }
  const names = new Set(rows.all.flatMap((row) => Object.keys(callsOf(row))))
  return [...names]
    .filter((name) => rows.all.some((row) => (callsOf(row)[name] ?? 0) >= 0.01))
    .map((name) => ({ head: name, cell: (row) => figure(callsOf(row)[name] ?? 0) }))
}
