import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Program, type ProgramOptions, startProgram } from '@onetrip/stack/program.ts'
import { onTestFinished } from 'vitest'
import { secret } from './support.ts'

// The real entry file, run by plain Node: vitest compiles types differently.
export const apiProgram = fileURLToPath(new URL('../src/server.ts', import.meta.url))

/** Long timeouts, so that responses do not depend on the load of the machine. */
const longTimeouts = { REDIS_DEADLINE_MS: '60000', MAX_EVENT_LOOP_DELAY_MS: '0' }

/** Default settings with a free port, overridden by `settings`. */
export const apiEnvironment = (settings: Record<string, string>) => ({
  ...process.env,
  NODE_ENV: 'development',
  PORT: '0',
  SESSION_SECRETS: secret,
  ...longTimeouts,
  ...settings,
})

interface StartOptions extends Partial<Pick<ProgramOptions, 'ready' | 'onLine'>> {
  /** Entry file. Default: that of the API. */
  program?: string
}

/** Starts the API as a process. The caller stops it. */
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
    readyTimeoutMs: 100_000, // less than the time limit of a test
    ...options,
  })

/** Like `startApiProcess`; stops the process when the current test ends, and returns its URL. */
export async function apiProcessForThisTest(
  settings: Record<string, string>,
  program = apiProgram,
): Promise<{ api: Program; url: string }> {
  const api = await startApiProcess(settings, { program })
  onTestFinished(async () => {
    api.signal('SIGCONT') // a stopped process handles SIGTERM only after SIGCONT
    await api.stop()
  })
  return { api, url: /listening at (http:[^"]+)/.exec(api.lastLines.join('\n'))?.[1] ?? '' }
}

/** Starts the API with settings with which it cannot start. Returns exit code and standard error. */
export async function failedStart(
  settings: Record<string, string>,
  program = apiProgram,
): Promise<{ code: number; stderr: string }> {
  const child = spawn(process.execPath, [program], { env: apiEnvironment(settings) })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { code: code as number, stderr }
}
