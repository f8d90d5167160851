import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseInfo } from '@onetrip/session-store'
import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { factsOf, readingOf } from '@onetrip/stack/redis-info.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { gitState } from '../src/measure/machine.ts'

describe('metrics', () => {
  test('are parsed to names, labels and values', () => {
    const text = [
      '# HELP onetrip_store_errors_total Errors',
      '# TYPE onetrip_store_errors_total counter',
      'onetrip_store_errors_total{code="NOT_SENT"} 2',
      'onetrip_info{strategy="pipeline",transport="tcp"} 1',
      'process_cpu_seconds_total 1.25 1700000000000',
      'process_resident_memory_bytes 1.5e8',
      '',
    ].join('\n')
    expect(parseMetrics(text)).toEqual([
      { name: 'onetrip_store_errors_total', labels: { code: 'NOT_SENT' }, value: 2 },
      { name: 'onetrip_info', labels: { strategy: 'pipeline', transport: 'tcp' }, value: 1 },
      { name: 'process_cpu_seconds_total', labels: {}, value: 1.25 },
      { name: 'process_resident_memory_bytes', labels: {}, value: 150_000_000 },
    ])
  })

  test('can have quotes, braces and line ends in a label', () => {
    const [metric] = parseMetrics(String.raw`m{a="say \"}\"",b="one\ntwo\\three",c=""} +Inf`)
    expect(metric).toEqual({
      name: 'm',
      labels: { a: 'say "}"', b: 'one\ntwo\\three', c: '' },
      value: Number.POSITIVE_INFINITY,
    })
  })

  test('text that is not a metric is ignored', () => {
    expect(parseMetrics('<html>\n404 Not Found')).toEqual([])
  })
})

describe('INFO', () => {
  const info = parseInfo(
    [
      '# Server',
      'redis_version:8.0.6',
      'onetrip_build:patched',
      'onetrip_build_key:ce8d76da85e6aaaaaaaaaaaa',
      'process_id:42',
      '# Threads',
      'io_thread_0:clients=1,reads=2,writes=3',
      'io_thread_1:clients=1,reads=2,writes=3',
      '# Stats',
      'total_connections_received:10',
      'total_commands_processed:100',
      'total_reads_processed:50',
      '# CPU',
      'used_cpu_sys:1.5',
      'used_cpu_user:2.25',
      'used_cpu_sys_main_thread:1.0',
      'used_cpu_user_main_thread:2.0',
      'total_net_input_bytes:700',
      'total_net_output_bytes:900',
      'cmdstat_info:calls=4,usec=80',
      'cmdstat_get:calls=93,usec=31',
    ].join('\r\n'),
  )

  test('has version, build, I/O threads and process id', () => {
    const facts = { version: '8.0.6', build: 'patched-ce8d76da85e6', ioThreads: 2, pid: 42 }
    expect(factsOf(info)).toEqual(facts)
  })

  test('of Redis 7 has no build and no I/O threads', () => {
    expect(factsOf(parseInfo('redis_version:7.0.15\r\nprocess_id:7'))).toEqual({
      version: '7.0.15',
      build: null,
      ioThreads: null,
      pid: 7,
    })
  })

  test("readings exclude the monitor's own commands", () => {
    expect(readingOf(info, 3)).toEqual({
      cpuSeconds: 3.75,
      userCpuSeconds: 2.25,
      kernelCpuSeconds: 1.5,
      mainThreadCpuSeconds: 3,
      connections: 10,
      commands: 97,
      reads: 46,
      netInputBytes: 700,
      netOutputBytes: 900,
      commandStats: new Map([
        ['info', { calls: 1, micros: 20 }],
        ['get', { calls: 93, micros: 31 }],
      ]),
    })
  })
})

test('a working copy is dirty if anything but published results has changed', async () => {
  const folder = await temporaryFolder()
  expect(await gitState(folder)).toBeNull()
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' })
  git('init', '--quiet')
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org']
  git(...identity, 'commit', '--quiet', '--allow-empty', '--message', 'Begin')
  const commit = git('rev-parse', 'HEAD').trim()
  await mkdir(join(folder, 'load/results'), { recursive: true })
  await writeFile(join(folder, 'load/results/http.json'), '{}')
  expect(await gitState(folder)).toEqual({ commit, dirty: false })
  await writeFile(join(folder, 'load/cli.ts'), '')
  expect(await gitState(folder)).toEqual({ commit, dirty: true })
})
