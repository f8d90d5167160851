import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Census } from '../src/census.ts'
import { findingsOf } from '../src/checks.ts'
import { costsOf, figuresOf } from '../src/figures.ts'
import type { Observation } from '../src/finding.ts'
import { parseInfo } from '../src/info.ts'
import { type ClientRow, parseClientList } from '../src/replies.ts'
import { reportOf, terminalReport } from '../src/report.ts'
import { pauseAfter } from '../src/watch.ts'

const infoOf = (fields: Record<string, number | string>) =>
  parseInfo(
    Object.entries(fields)
      .map(([name, value]) => `${name}:${value}`)
      .join('\r\n'),
  )

/** The observation of a server whose counters reached these values from 0 in ten seconds. */
function seenWith(
  fields: Record<string, number | string>,
  change: Partial<Observation> = {},
): Observation {
  const info = infoOf({ maxclients: 10_000, connected_clients: 5, ...fields })
  const before = infoOf({ connected_clients: 5 })
  const figures = figuresOf(before, info, { seconds: 10, own: new Map(), census: null })
  return {
    figures,
    info,
    costs: costsOf(figures),
    clients: null,
    slowLog: null,
    stallMs: 10,
    ...change,
  }
}

const ids = (seen: Observation) => findingsOf(seen).map(({ id, severity }) => `${id} ${severity}`)

const textOf = (seen: Observation) =>
  terminalReport(seen, reportOf(seen, [], { server: '', unseen: [] }))

/** Pipelines of ten GETs on kept connections. */
const pipelined = {
  total_commands_processed: 100_000,
  total_reads_processed: 10_000,
  used_cpu_user_main_thread: 0.6,
  used_cpu_sys_main_thread: 0.4,
  cmdstat_get: 'calls=100000,usec=100000',
}

const opened = (count: number) => ({
  ...pipelined,
  total_connections_received: count,
  total_reads_processed: 10_000 + 2 * count,
})
const kept = (count: number) => ({ ...opened(count), connected_clients: count + 5 })
const each = (command: string, calls: number) => ({
  [`cmdstat_${command}`]: `calls=${calls},usec=${calls}`,
})

test.each<[string, Record<string, number | string>, string[], Partial<Observation>?]>([
  ['pipelines on long-lived connections', pipelined, []],
  ['a few short connections', opened(9), []],
  ['short connections while others use pipelines', opened(4_000), ['connection-churn high']],
  [
    'a connection for each request of five commands, one after the other',
    { ...opened(4_000), total_commands_processed: 20_000, total_reads_processed: 24_000 },
    ['connection-churn high', 'one-command-per-trip high'],
  ],
  ['connections that stay open', kept(4_000), []],
  [
    'a HELLO and INFO for each',
    { ...kept(4_000), ...each('hello', 4_000), ...each('info', 4_000) },
    [],
  ],
  ['five HELLO for each', { ...kept(4_000), ...each('hello', 20_000) }, ['chatter low']],
  [
    'a HELLO for each short one',
    { ...opened(4_000), ...each('hello', 4_000) },
    ['connection-churn high'],
  ],
  [
    'connections near maxclients',
    { ...pipelined, connected_clients: 8_000 },
    ['rejected-connections medium'],
  ],
  ['refused connections', { ...pipelined, rejected_connections: 1 }, ['rejected-connections high']],
  [
    'two of them, sorted by severity',
    { ...pipelined, total_reads_processed: 100_000, connected_clients: 8_000 },
    ['one-command-per-trip high', 'rejected-connections medium'],
  ],
])('the findings for %s', (_, fields, expected, change) => {
  expect(ids(seenWith(fields, change))).toEqual(expected)
})

test('ports run out where clients close their connections', () => {
  const evidence = (more = {}) =>
    findingsOf(seenWith({ ...opened(9_000), ...more }))[0]?.evidence.join()
  expect(evidence()).toContain('ports')
  expect(evidence(each('quit', 9_000))).not.toContain('ports') // after QUIT, Redis closes the connection
})

test('commands per round trip are unknown if reads are large, an upper bound if scripts ran', () => {
  // Pipelines of large SETs: Redis reads each of them in three parts.
  const large = (bytesPerRead: number) =>
    seenWith({
      ...pipelined,
      total_reads_processed: 300_000,
      total_net_input_bytes: 300_000 * bytesPerRead,
    })
  expect(ids(large(16_384))).toEqual([])
  expect(textOf(large(16_384))).toContain('10,000/s, unknown per round trip')
  expect(ids(large(4_096))).toEqual(['one-command-per-trip high'])
  // More reads than commands: some were the ends of connections.
  expect(textOf(large(4_096))).toContain('10,000/s, 1.00 per round trip')
  expect(textOf(seenWith({ ...pipelined, ...each('eval', 10) }))).toContain(
    'per round trip at most',
  )
})

test.each([
  ['EVAL and its commands', { eval: 500_000, get: 400_000 }, 0.5],
  ['functions, scripts and others', { fcall_ro: 100_000, evalsha: 100_000, get: 300_000 }, 0.7],
  ['a script that computes', { evalsha_ro: 800_000, get: 10 }, 0.2],
  ['a transaction with a script', { exec: 610_000, eval: 600_000, get: 500_000 }, 0.4],
])('the time of %s is counted once', (_, micros, ioShare) => {
  const stats = Object.entries(micros).map(([name, usec]) => [
    `cmdstat_${name}`,
    `calls=1000,usec=${usec}`,
  ])
  const seen = seenWith({ ...pipelined, cmdstat_get: '', ...Object.fromEntries(stats) })
  expect(seen.costs.shareOf({ trips: seen.figures.trips })).toBeCloseTo(ioShare)
})

test('findings fit 80 columns, and a report says if no commands came', () => {
  const usual = { connections: 9, short: 5, commands: null, active: 0.5, outputBytes: 0 }
  const clients = [
    {
      label: `shop at ${'10.0.0.7, '.repeat(9)}`,
      ...usual,
      lastCommands: ['hello', 'zrangebyscore'],
    },
  ]
  const busy = { ...opened(9_000), ...each('hello', 20_000), rejected_connections: 1 }
  const seen = seenWith(busy, { clients })
  const text = terminalReport(seen, reportOf(seen, findingsOf(seen), { server: '', unseen: [] }))
  expect(
    text
      .slice(text.indexOf('1. ['))
      .split('\n')
      .filter((line) => stripVTControlCharacters(line).length > 80),
  ).toEqual([])
  for (const { articles } of findingsOf(seen)) expect(articles ?? '').toMatch(/^.{0,69}$/)
  expect(textOf(seenWith({}))).toContain('No commands came')
})

test('rejects counters that decreased', () => {
  const options = { seconds: 1, own: new Map(), census: null }
  const run = () => figuresOf(infoOf({ total_commands_processed: 5 }), infoOf({}), options)
  expect(run).toThrow('Run the doctor again')
})

describe('CLIENT LIST', () => {
  test('takes at most 1 % of the time, at a microsecond per connection', () => {
    expect([1, 1_000, 10_000].map(pauseAfter)).toEqual([100, 100, 1_000])
  })

  const line = (id: number, more = '') =>
    `id=${id} addr=10.0.0.7:4711 name=shop age=0 idle=0 flags=N omem=0 cmd=get user=app${more}\n`

  test('is parsed for Redis 8, Redis 7.0 and Valkey', () => {
    const rows = parseClientList(
      `${line(1, ' lib-name=ioredis lib-ver=6.0.0')}${line(2)}id=3 addr=[/run/v.sock:0]:0 name= idle=7 flags=U omem=9 cmd=ping user=default tot-cmds=4\n`,
    )
    expect(rows.map(({ host, library, commands }) => [host, library, commands])).toEqual([
      ['10.0.0.7', 'ioredis 6.0.0', null],
      ['10.0.0.7', '', null],
      ['Unix socket', '', 4],
    ])
  })

  test('can have 150,000 connections', () => {
    const [row] = parseClientList(line(1))
    const census = new Census()
    census.add(Array.from({ length: 150_000 }, (_, id) => ({ ...(row as ClientRow), id })))
    expect(census.groups()).toMatchObject([{ connections: 150_000, short: 0, outputBytes: 0 }])
  })

  test('shows short connections: those opened after the first sample and closed before the last', () => {
    const census = new Census()
    for (const present of [[1], [1, 2, 3], [1, 3, 4], [1, 4]]) {
      census.add(parseClientList(present.map((id) => line(id)).join('')))
    }
    const [group] = census.groups()
    expect(group).toMatchObject({ label: 'shop at 10.0.0.7, user app', connections: 3, short: 2 })
    expect(census.shortOpen).toBe(3 / 4)
  })
})
