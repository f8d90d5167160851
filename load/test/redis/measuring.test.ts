import { describe, expect, test } from 'vitest'
import { numbers } from '../../src/drivers/redis/options.ts'
import { parsePerf, parseStrace } from '../../src/drivers/redis/system-calls.ts'
import { cpuBetween, readCpu } from '../../src/drivers/redis/threads.ts'

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
