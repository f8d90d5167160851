import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { type Program, startProgram } from './program.ts'

const server = fileURLToPath(new URL('../../api/src/server.ts', import.meta.url))

export interface ApiOptions {
  /** Its strategy, or the name of `program`. */
  variant: string
  /** Another program that serves the same API. Default: `apps/api`. */
  program?: string
  host: string
  port: number
  /** Where its Redis is: `redis://…` or `unix:///…`. */
  redisUrl: string
  /** What it signs tokens with. APIs that share it take each other's tokens. */
  sessionSecret: string
  /** Default `warn`. */
  logLevel?: string
  /** Processes on the one port. Default: WORKERS of the environment, or 1. Contenders have but one. */
  workers?: number
  /** Connections to Redis. Default: REDIS_POOL_SIZE of the environment, or the API's own. */
  poolSize?: number
  /** How long one update may take. Default: REDIS_DEADLINE_MS of the environment, or the API's own. */
  deadlineMs?: number
  /** Whether it runs a janitor. Default: as the environment has it; false for a measurement. */
  janitor?: boolean
  /** Gives the start up. */
  signal?: AbortSignal
  onLine?: (line: string) => void
  /** Removes what the program leaves behind when it is killed. */
  afterExit?: (pid: number) => void
}

/** Where a client on this machine reaches an API that listens on `host`. */
export function apiUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** Whether the API at `url` says that it and its Redis are ready. Never rejects. */
export async function isReady(url: string, signal?: AbortSignal): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`${url}/readyz`, {
      reset: true, // no connection stays open that the API would have to wait for when it closes
      headersTimeout: 2_000,
      ...(signal && { signal }),
    })
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  }
}

/**
 * Starts an API and waits until it answers `/readyz` with 200.
 *
 * @throws ProgramError when it does not start, for instance because its Redis does not answer.
 */
export async function startApi(options: ApiOptions): Promise<Program> {
  const { variant, program, host, port, redisUrl, sessionSecret, logLevel = 'warn' } = options
  const api = await startProgram({
    name: `the ${variant} API`,
    command: process.execPath,
    args: [program ?? server],
    env: {
      ...process.env,
      NODE_ENV: 'development',
      LOG_LEVEL: logLevel,
      HOST: host,
      PORT: String(port),
      ...(options.workers !== undefined && { WORKERS: String(options.workers) }),
      ...(options.poolSize !== undefined && { REDIS_POOL_SIZE: String(options.poolSize) }),
      ...(options.deadlineMs !== undefined && { REDIS_DEADLINE_MS: String(options.deadlineMs) }),
      ...(options.janitor === false && { JANITOR_INTERVAL_SECONDS: '0' }),
      ...(program === undefined && { STRATEGY: variant }),
      REDIS_URL: redisUrl,
      REDIS_PASSWORD_FILE: '', // whatever it is about, redisUrl has its password
      // The load generator logs in as many users as it is asked for, from one address.
      LOGIN_LIMIT_PER_USER: process.env.LOGIN_LIMIT_PER_USER ?? '0',
      LOGIN_LIMIT_PER_ADDRESS: process.env.LOGIN_LIMIT_PER_ADDRESS ?? '0',
      SESSION_SECRETS: sessionSecret,
      SESSION_SECRETS_FILE: '',
    },
    async ready(signal) {
      while (!(await isReady(apiUrl(host, port), signal))) {
        await delay(50, undefined, { signal }).catch(() => {})
        if (signal.aborted) return
      }
    },
    readyTimeoutMs: 30_000,
    ...(options.signal && { signal: options.signal }),
    ...(options.onLine && { onLine: options.onLine }),
  })
  void api.exited.then(() => options.afterExit?.(api.pid))
  return api
}
