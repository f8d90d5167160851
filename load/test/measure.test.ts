import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseInfo } from '@onetrip/session-store'
import { factsOf, readingOf } from '@onetrip/stack/redis-info.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { gitState } from '../src/measure/machine.ts'

test("INFO has facts, and readings without the monitor's own commands", () => {
  const fields = {
    redis_version: '8.0.6',
    onetrip_build: 'patched',
    onetrip_build_key: 'ce8d76da85e6aaaaaaaaaaaa',
    process_id: 42,
    io_thread_0: 'clients=1,reads=2,writes=3',
    io_thread_1: 'clients=1,reads=2,writes=3',
    total_connections_received: 10,
    total_commands_processed: 100,
    total_reads_processed: 50,
    used_cpu_sys: 1.5,
    used_cpu_user: 2.25,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}:${value}`)
  const info = parseInfo(lines.join('\r\n'))
  const facts = { version: '8.0.6', build: 'patched-ce8d76da85e6', ioThreads: 2, pid: 42 }
  expect(factsOf(info)).toEqual(facts)
  expect(readingOf(info, 3)).toMatchObject({
    cpuSeconds: 3.75,
    connections: 10,
    commands: 97,
    reads: 46,
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
