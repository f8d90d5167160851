import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { type Program, startProgram } from './program.ts'
import { until } from './until.ts'

/** The entry files of the API alone, and of the API with the demo page and the shop. */
const applications = {
  api: fileURLToPath(new URL('../../api/src/server.ts', import.meta.url)),
  demo: fileURLToPath(new URL('../../demo/src/server.ts', import.meta.url)),
}

/** Options that are the same for all APIs of a stack. */
export interface CommonApiOptions {
  host: string
  /** Signs the tokens. APIs that share it accept each other's tokens. */
  sessionSecret: string
  /** Default `api`. */
  application?: keyof typeof applications
  /** Settings that override the environment of this process. */
  env?: NodeJS.ProcessEnv
  /** Cancels the start. */
  signal?: AbortSignal
}

export interface OwnApiOptions {
  /** The strategy, or the name of `program`. */
  variant: string
  /** Another program with the same API, instead of `application`. */
  program?: string
  port: number
  /** Called when the program has exited, to remove what a killed program leaves. */
  afterExit?: (pid: number) => void
}

export interface ApiOptions extends CommonApiOptions, OwnApiOptions {
  /** URL of Redis with its password, as for `REDIS_URL`. */
  redis: string
  onLine?: (line: string) => void
}

/** The URL, for clients on this machine, of an API that listens on `host`. */
export function apiUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** Whether `/readyz` of an API returns 200: the API and its Redis are ready. Never rejects. */
export async function isReady(url: string, signal: AbortSignal | null = null): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`${url}/readyz`, {
      reset: true, // closes the connection, so that the API need not wait for it when it stops
      headersTimeout: 2_000,
      signal,
    })
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  }
}

/**
 * Starts an API and waits until `/readyz` returns 200.
 *
 * @throws ProgramError if the API does not start, for example because its Redis does not answer.
 */
export async function startApi(options: ApiOptions): Promise<Program> {
  const { variant, application = 'api', program, host, port } = options
  const { env } = process
  const api = await startProgram({
    name: `the ${variant} API`,
    command: process.execPath,
    args: [program ?? applications[application]],
    env: {
      ...env,
      NODE_ENV: 'development',
      LOG_LEVEL: 'warn',
      // The load generator logs in many users from one address.
      LOGIN_LIMIT_PER_USER: env.LOGIN_LIMIT_PER_USER ?? '0',
      LOGIN_LIMIT_PER_ADDRESS: env.LOGIN_LIMIT_PER_ADDRESS ?? '0',
      ...options.env,
      HOST: host,
      PORT: String(port),
      ...(program === undefined && { STRATEGY: variant }),
      REDIS_URL: options.redis,
      REDIS_PASSWORD_FILE: '',
      SESSION_SECRETS: options.sessionSecret,
      SESSION_SECRETS_FILE: '',
    },
    ready: (signal) => until(() => isReady(apiUrl(host, port), signal), { signal }),
    readyTimeoutMs: 30_000,
    signal: options.signal,
    onLine: options.onLine,
  })
  void api.exited.then(() => options.afterExit?.(api.pid))
  return api
}
