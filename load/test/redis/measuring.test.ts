import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { numbers } from '../../src/drivers/redis/options.ts'
import { parsePerf, parseStrace } from '../../src/drivers/redis/system-calls.ts'
import { cpuBetween, readCpu } from '../../src/drivers/redis/threads.ts'
import { shortConnections } from '../../src/redis/experiments/short-connections.ts'
import {
  shortConclusions,
  shortTable,
  summarizeShort,
} from '../../src/redis/experiments/short-connections-report.ts'
import type { ShortRun } from '../../src/redis/experiments/short-connections-runs.ts'

describe('CPU time', () => {
  const thread = (name: string, cpuSeconds: number, waitedSeconds = 0) => ({
    ...{ name, cpuSeconds, waitedSeconds },
  })
  const reading = (at: number, threads: [number, ReturnType<typeof thread>][]) => ({
    at,
    main: threads[0]?.[1] ?? thread('', 0),
    threads: new Map(threads),
  })

  test('is the difference of two readings, thread by thread', () => {
    const before = reading(10, [
      [7, thread('redis-server', 1, 0.5)],
      [8, thread('io_thd_1', 2)],
    ])
    const after = reading(12, [
      [7, thread('redis-server', 2.2, 0.9)],
      [8, thread('io_thd_1', 2)],
      [9, thread('bio', 0.3)], // began meanwhile
    ])
    const use = cpuBetween(before, after)
    expect(use.seconds).toBe(2)
    expect(use.mainCpuSeconds).toBeCloseTo(1.2)
    expect(use.cpuSeconds).toBeCloseTo(1.5)
    expect(use.mainDemand).toBeCloseTo(0.8)
    expect(Object.keys(use.byThread)).toEqual(['redis-server', 'bio'])
  })

  test.runIf(process.platform === 'linux')('is read of every thread of a process', async () => {
    const before = await readCpu(process.pid)
    while (process.cpuUsage().user < 10_000) {
      // Until there is something to see.
    }
    const end = process.cpuUsage()
    while (process.cpuUsage(end).user < 20_000) {
      // 20 ms of work.
    }
    const use = cpuBetween(before, await readCpu(process.pid))
    expect(use.cpuSeconds).toBeGreaterThan(0.01)
    expect(before.threads.size).toBeGreaterThan(1)
  })

  test('of a process that is not there is a problem', async () => {
    await expect(readCpu(2 ** 30)).rejects.toThrow(/cannot be measured|on Linux only/)
  })
})

test('the table of strace is understood', () => {
  const table = `strace: Process 123 attached
strace: Process 123 detached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 40.00    0.004000           4      1000           close
 30.00    0.003000           3      1100       100 accept4
  0.00    0.000000           0         1           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.007000           3      2101       100 total`
  expect(parseStrace(table.split('\n'))).toEqual({
    total: 2_101,
    byName: { close: 1_000, accept4: 1_100, epoll_wait: 1 },
  })
  expect(parseStrace(['strace: attach: Operation not permitted']).total).toBe(0)
})

test('the line of perf is understood', () => {
  const lines = ['# started', '4711,,raw_syscalls:sys_enter,1000,100.00,,']
  expect(parsePerf(lines)).toEqual({ total: 4_711, byName: null })
  expect(parsePerf(['<not supported>,,raw_syscalls:sys_enter,0,0,,']).total).toBe(0)
})

test('a list of numbers has each once', () => {
  expect(numbers(0, 100)('0, 7,100')).toEqual([0, 7, 100])
  for (const text of ['', '1,,2', '101', '-1', '1,1', '1.5']) {
    expect(() => numbers(0, 100)(text), text).toThrow()
  }
})

describe('the report on short connections', () => {
  const run = (given: Partial<ShortRun>): ShortRun => ({
    connections: 1_000,
    connectionsPerSecond: 40_000,
    mainCpuMicros: 20,
    cpuMicros: 21,
    mainDemand: 0.9,
    byThread: {},
    latency: {
      ...{ mean: 1, p50: 1, p90: 1, p99: 2, p999: 3, max: 4 },
      ...{ below1: 0.5, from1To2: 0.4, above2: 0.1 },
    },
    errors: {},
    replyErrors: 0,
    generator: { cpuSeconds: 0.5, demand: 0.6, backlogFull: 0 },
    ...given,
  })
  const way = { build: 'patched', ioThreads: 1, idle: 0, transport: 'tcp' } as const
  const summarize = (runs: ShortRun[], base: ShortRun[] | null = null) =>
    summarizeShort({ way, label: 'TCP  0 idle  patched', runs, base, calls: null })

  test('compares with stock round by round', () => {
    const stock = [run({ mainCpuMicros: 20 }), run({ mainCpuMicros: 40 })]
    const summary = summarize([run({ mainCpuMicros: 10 }), run({ mainCpuMicros: 30 })], stock)
    expect(summary.ratio).toEqual({ median: 0.625, min: 0.5, max: 0.75 })
    expect(shortConclusions([summary])[0]).toBe(
      'TCP 0 idle: patched needs 0.63 times the main-thread CPU of stock.',
    )
  })

  test('marks a rate that the generator limited, but not one that Redis did', () => {
    const busy = { cpuSeconds: 1, demand: 0.99, backlogFull: 0 }
    const limited = summarize([run({}), run({ generator: busy })])
    expect(limited.generatorAtLimit).toBe(true)
    expect(shortTable([limited], 50).rows[0]?.[5]).toBe('* 40,000')
    expect(shortConclusions([limited]).join()).toContain('* The generator was busy all the time')
    expect(summarize([run({ generator: busy, mainDemand: 0.97 })]).generatorAtLimit).toBe(false)
  })

  test('adds up what failed', () => {
    const failing = { errors: { 'connect EADDRNOTAVAIL': 2 }, replyErrors: 1 }
    expect(summarize([run(failing), run(failing)]).errors).toEqual({
      'connect EADDRNOTAVAIL': 4,
      reply: 2,
    })
  })
})

test('--idle takes numbers and "most", each of them once', () => {
  const idle = (text: string) => {
    const command = new Command().exitOverride().configureOutput({ writeErr: () => {} })
    shortConnections.configure(command)
    return command.parse(['--idle', text], { from: 'user' }).opts<{ idle: unknown }>().idle
  }
  expect(idle('0, most,1000')).toEqual([0, 'most', 1_000])
  for (const bad of ['banana', '', ',', '1,', '-1', '1e3', '1000001', 'most,mostly']) {
    expect(() => idle(bad), bad).toThrow('It must be whole numbers up to 1000000, or "most".')
  }
  for (const twice of ['most,most', '7,007']) expect(() => idle(twice)).toThrow('only once')
})
