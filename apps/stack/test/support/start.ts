import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { portsFrom } from '../../src/cluster.ts'
import { checkPorts, freePorts } from '../../src/ports.ts'
import { isAlive } from '../../src/processes.ts'
import { readRecord, type StackRecord } from '../../src/record.ts'
import { filesIn, processesOf, temporaryFolder } from '../../src/testing/folders.ts'
import { runStart, type TestedProgram } from '../../src/testing/programs.ts'

/** A running `npm start`, with its ports and its record. */
export interface Started extends TestedProgram {
  state: string
  record: StackRecord
  ports: number[]
}

/** The options for the ports. With `REDIS_URL`, there is no port for Redis. */
export function portOptions(ports: readonly number[], env: NodeJS.ProcessEnv = {}): string[] {
  const names = ['port', 'naive-port', ...(env.REDIS_URL ? [] : ['redis-port'])]
  return names.map((name, index) => `--${name}=${ports[index]}`)
}

/** Runs `npm start`, which must fail. Returns its output. */
export async function refused(
  until: RegExp,
  env: NodeJS.ProcessEnv = {},
  { state, ports }: Partial<Pick<Started, 'state' | 'ports'>> = {},
  options: readonly string[] = [],
): Promise<readonly string[]> {
  const program = await runStart({
    state: state ?? (await temporaryFolder()),
    args: [...portOptions(ports ?? (await freePorts(3)), env), ...options],
    until,
    env,
  })
  expect(await program.exited).toEqual({ code: 1, signal: null })
  return program.output
}

/** Runs `npm start` on free ports, or on the ports of `before`. */
export async function started(
  env: NodeJS.ProcessEnv = {},
  before?: Pick<Started, 'state' | 'ports'>,
  options: readonly string[] = [],
): Promise<Started> {
  const state = before?.state ?? (await temporaryFolder())
  const ports = before?.ports ?? (await freePorts(3))
  const args = [...portOptions(ports, env), ...options]
  const program = await runStart({ state, args, until: /^\s*Stop /, env })
  const record = await readRecord(join(state, 'run', 'stack.json'))
  if (!record) throw new Error('npm start has not written its record')
  return Object.assign(program, { state, record, ports })
}

/** Ports of the APIs, and the first of 12 consecutive free ports below the ephemeral ports. */
export async function clusterPorts(): Promise<number[]> {
  for (;;) {
    const apis = await freePorts(2)
    const first = 12_000 + Math.floor(Math.random() * 18_000)
    const wanted = [...apis, ...portsFrom(first)]
    const free = await checkPorts(
      wanted.map((port) => ({ port, host: '127.0.0.1', what: '', how: '' })),
    ).then(
      () => true,
      () => false,
    )
    if (free) return [...apis, first]
  }
}

/** Runs `npm start -- --cluster`. */
export async function clusterStarted(before?: Pick<Started, 'state' | 'ports'>): Promise<Started> {
  const places = before ?? { state: await temporaryFolder(), ports: await clusterPorts() }
  return await started({}, places, ['--cluster'])
}

export async function expectNothingLeft({ state, record }: Started): Promise<void> {
  const programs = [record.redis, ...(record.redis.nodes ?? []), ...record.apis]
  const pids = programs.map(({ pid }) => pid)
  expect(pids.filter((pid) => pid !== null && isAlive(pid))).toEqual([])
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(join(state, 'run'))).toEqual([])
}

/** The child processes that a process has not yet waited for. Linux only. */
export async function childrenOf(parent: number): Promise<number[]> {
  const text = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** The processes of a stack whose command line contains `text`. */
export async function processesWith(state: string, text: string): Promise<number[]> {
  const pids = await processesOf(state)
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  )
  return pids.filter((_, index) => lines[index]?.includes(text))
}

/** Runs a shell script. Returns its standard output. */
export const sh = async (script: string) => (await promisify(execFile)('sh', ['-c', script])).stdout
