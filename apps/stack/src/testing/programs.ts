import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Program, startProgram } from '../program.ts'

const programs = {
  'start.ts': fileURLToPath(new URL('../start.ts', import.meta.url)),
  'relay.ts': fileURLToPath(new URL('../relay.ts', import.meta.url)),
  'cli.ts': fileURLToPath(new URL('../../../../load/src/cli.ts', import.meta.url)),
}

/** Path of one of the programs that tests start. */
export const source = (name: keyof typeof programs) => programs[name]

/** Our own environment without what would change what the programs do. */
export function cleanEnv(state: string, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const env = { ...process.env }
  for (const name of ['PORT', 'NAIVE_PORT', 'HOST', 'REDIS_PORT', 'REDIS_BUILD', 'TRANSPORT']) {
    delete env[name]
  }
  for (const name of ['REDIS_URL', 'REDIS_SERVER', 'LOG_LEVEL', 'NO_COLOR']) delete env[name]
  return { ...env, ONETRIP_STATE: state, ONETRIP_REPORT: 'off', NODE_OPTIONS: '', ...extra }
}

/** A program under test, and everything that it printed. */
export interface Tested extends Program {
  readonly output: readonly string[]
}

/**
 * Starts `start.ts` or `cli.ts` as a process, as npm does, and waits for a line that matches.
 * Stopped when the test ends.
 */
export async function run(
  name: 'start.ts' | 'cli.ts',
  options: { state: string; args: readonly string[]; until: RegExp; env?: NodeJS.ProcessEnv },
): Promise<Tested> {
  const output: string[] = []
  const program = await startProgram({
    name,
    command: process.execPath,
    args: [source(name), ...options.args],
    env: cleanEnv(options.state, options.env ?? {}),
    ready: options.until,
    readyTimeoutMs: 50_000,
    onLine: (line) => output.push(line),
  })
  onTestFinished(async () => void (await program.stop()))
  return Object.defineProperties({ output } as unknown as Tested, {
    ...Object.getOwnPropertyDescriptors(program),
  })
}
