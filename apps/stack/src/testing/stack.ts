import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { freePorts } from '../ports.ts'
import { readRecord, type StackRecord } from '../record.ts'
import { processesOf } from './folders.ts'
import { startPath, startTested, type TestedProgram } from './programs.ts'

export interface TestStack extends StackRecord {
  /** URL of the batch API, without a trailing slash. */
  readonly url: string
  readonly program: TestedProgram
  /** Stops the stack and removes its state. Throws if a process is left running. */
  stop(): Promise<void>
}

/** Runs `npm start` on free ports, with its own state. The caller must stop it. */
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
    throw new Error('npm start has not written its record')
  }
  return { ...record, url: record.apis[0]?.url ?? '', program, stop }
}

/** Like `startTestStack`, for all tests of a file. Call it at the level of `describe`; use its URL in tests and hooks. */
export function stackOfThisFile(): { url: string } {
  let stack: TestStack

  beforeAll(async () => {
    stack = await startTestStack()
  })

  afterAll(() => stack?.stop())

  return {
    get url() {
      return stack.url
    },
  }
}
