import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Program, startProgram } from '../program.ts'

/** The program behind `npm start`. */
export const startPath = fileURLToPath(new URL('../start.ts', import.meta.url))

const settings = ['PORT', 'NAIVE_PORT', 'HOST', 'REDIS_PORT', 'REDIS_BUILD', 'TRANSPORT']
settings.push('REDIS_URL', 'REDIS_SERVER', 'LOG_LEVEL', 'NO_COLOR', 'RACE')

/** The environment of this process without variables that would change the behaviour of the programs. */
export function cleanEnv(state: string, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const env = { ...process.env }
  for (const name of settings) delete env[name]
  return { ...env, ONETRIP_STATE: state, ONETRIP_REPORT: 'off', NODE_OPTIONS: '', ...extra }
}

/** A program under test, with its complete output. */
export interface TestedProgram extends Program {
  readonly output: readonly string[]
}

export interface RunOptions {
  /** Folder for the state (`ONETRIP_STATE`). */
  state: string
  args: readonly string[]
  /** The line of output to wait for. */
  until: RegExp
  env?: NodeJS.ProcessEnv
}

/** Starts a program as npm does, and waits for a line of output. The caller must stop it. */
export async function startTested(path: string, options: RunOptions): Promise<TestedProgram> {
  const output: string[] = []
  const program = await startProgram({
    name: path,
    command: process.execPath,
    args: [path, ...options.args],
    env: cleanEnv(options.state, options.env ?? {}),
    ready: options.until,
    readyTimeoutMs: 110_000, // less than a test may take
    onLine: (line) => output.push(line),
  })
  return Object.assign(program, { output })
}

/** Like `startTested`; stopped after the current test. */
export async function runProgram(path: string, options: RunOptions): Promise<TestedProgram> {
  const program = await startTested(path, options)
  onTestFinished(async () => void (await program.stop()))
  return program
}

/** Runs `npm start`; see `runProgram`. */
export const runStart = (options: RunOptions): Promise<TestedProgram> =>
  runProgram(startPath, options)
