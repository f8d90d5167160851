import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Program, type ProgramOptions, startProgram } from '@onetrip/stack/program.ts'
import { onTestFinished } from 'vitest'
import { secret } from './support.ts'

// vitest compiles types in its own way: this is the real entry, for plain Node.
export const apiProgram = fileURLToPath(new URL('../src/server.ts', import.meta.url))

/** With them no answer depends on how busy the machine is. */
const patience = { REDIS_DEADLINE_MS: '60000', MAX_EVENT_LOOP_DELAY_MS: '0' }

/** Settings with which it starts, on a port of its own choice; those given win. */
export const apiEnvironment = (settings: Record<string, string>) => ({
  ...process.env,
  NODE_ENV: 'development',
  PORT: '0',
  SESSION_SECRETS: secret,
  ...patience,
  ...settings,
})

interface StartOptions extends Partial<Pick<ProgramOptions, 'ready' | 'onLine'>> {
  /** The entry file. Default: the API's own. */
  program?: string
}

/** The API as a process of its own, which is for the caller to stop. */
export const startApiProcess = (
  settings: Record<string, string>,
  { program = apiProgram, ...options }: StartOptions = {},
): Promise<Program> =>
  startProgram({
    name: 'API',
    command: process.execPath,
    args: [program],
    env: apiEnvironment(settings),
    ready: /listening at http/,
    readyTimeoutMs: 100_000, // less than a test may take
    ...options,
  })

/** As `startApiProcess`, stopped when the current test ends, and where it listens. */
export async function apiProcessForThisTest(
  settings: Record<string, string>,
  program = apiProgram,
): Promise<{ api: Program; url: string }> {
  const api = await startApiProcess(settings, { program })
  onTestFinished(async () => {
    api.signal('SIGCONT') // a stopped process takes SIGTERM only when it goes on
    await api.stop()
  })
  return { api, url: /listening at (http:[^"]+)/.exec(api.lastLines.join('\n'))?.[1] ?? '' }
}

/** How the API ends that cannot start with these settings, and what it says. */
export async function failedStart(
  settings: Record<string, string>,
  program = apiProgram,
): Promise<{ code: number; stderr: string }> {
  const child = spawn(process.execPath, [program], { env: apiEnvironment(settings) })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { code: code as number, stderr }
}
