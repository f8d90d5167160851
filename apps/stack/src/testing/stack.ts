import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { freePorts } from '../ports.ts'
import { readRecord, type StackRecord } from '../record.ts'
import { processesOf } from './folders.ts'
import { startPath, startTested, type TestedProgram } from './programs.ts'

export interface TestStack extends StackRecord {
  /** Address of the pooled API, without a slash at its end. */
  readonly url: string
  readonly program: TestedProgram
  /** Stops it and removes its state. Throws where a process is left. */
  stop(): Promise<void>
}

/** What `npm start` starts, on free ports, with state of its own, which is for the caller to stop. */
export async function startTestStack(env: NodeJS.ProcessEnv = {}): Promise<TestStack> {
  const state = await mkdtemp(join(tmpdir(), 'onetrip-stack-'))
  const [port, naivePort, redisPort] = await freePorts(3)
  const args = [`--port=${port}`, `--naive-port=${naivePort}`]
  if (!env.REDIS_URL) args.push(`--redis-port=${redisPort}`)
  const program = await startTested(startPath, { state, args, env, until: /^\s*Stop / })
  const stop = async () => {
    await program.stop(30_000)
    expect(await processesOf(state)).toEqual([])
    await rm(state, { recursive: true, force: true })
  }
  const record = await readRecord(join(state, 'run', 'stack.json'))
  if (!record) {
    await stop()
    throw new Error('npm start has left no record of what it runs')
  }
  return { ...record, url: record.apis[0]?.url ?? '', program, stop }
}

/**
 * As `startTestStack`, for all tests of a file. Call it where its tests are described; what it returns is
 * for tests and hooks.
 *
 * @param env Further environment; called when the stack starts.
 */
export function stackOfThisFile(env: () => NodeJS.ProcessEnv = () => ({})): { url: string } {
  let stack: TestStack

  beforeAll(async () => {
    stack = await startTestStack(env())
  })

  afterAll(() => stack?.stop())

  return {
    get url() {
      return stack.url
    },
  }
}
