import { fileURLToPath } from 'node:url'
import { type Program, startProgram } from './program.ts'

const demoProgram = fileURLToPath(new URL('../../demo/src/service/main.ts', import.meta.url))

const READY = /^The demo service listens/

export interface DemoProcessOptions {
  /** Path of the Unix socket to listen on. */
  socket: string
  /** The same URL as for the APIs. */
  redis: string
  /** URLs of Redis, or of each node of a cluster, with a user that may run INFO. */
  monitorUrls: readonly string[]
  /** Cancels the start. */
  signal?: AbortSignal
  onLine?: (line: string) => void
}

/**
 * Starts the demo service as a separate process, which exits with this one.
 *
 * @throws ProgramError if it does not start; the reason of `signal`.
 */
export async function startDemo(options: DemoProcessOptions): Promise<Program> {
  const { socket, redis, monitorUrls, signal, onLine } = options
  return await startProgram({
    name: 'the demo service',
    command: process.execPath,
    args: [demoProgram],
    // Passwords are passed in the environment, because other users can read arguments.
    env: {
      ...process.env,
      REDIS_URL: redis,
      DEMO_SOCKET: socket,
      MONITOR_URLS: monitorUrls.join(' '),
    },
    ready: READY,
    signal,
    onLine: (line) => READY.test(line) || onLine?.(line),
  })
}
