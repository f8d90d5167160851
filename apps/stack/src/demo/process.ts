import { fileURLToPath } from 'node:url'
import { type RedisTarget, settingsOfTarget } from '../address.ts'
import { type Program, startProgram } from '../program.ts'

const demoProgram = fileURLToPath(new URL('../demo.ts', import.meta.url))

const READY = /^The demo service listens/

export interface DemoProcessOptions {
  /** Path of its Unix socket. */
  socket: string
  /** With the user of the APIs. */
  redis: RedisTarget
  /** Of Redis, or of each node of a cluster, with a user that may ask INFO. */
  monitorUrls: readonly string[]
  /** Cancels the start. */
  signal?: AbortSignal
  onLine?: (line: string) => void
}

/**
 * Starts the demo service as a process of its own, which ends with this one.
 *
 * @throws ProgramError when it does not start; the reason of `signal`.
 */
export async function startDemo(options: DemoProcessOptions): Promise<Program> {
  const { socket, redis, monitorUrls, signal, onLine } = options
  return await startProgram({
    name: 'the demo service',
    command: process.execPath,
    args: [demoProgram],
    // Not as arguments: other users of the machine can read those.
    env: {
      ...process.env,
      ...settingsOfTarget(redis),
      DEMO_SOCKET: socket,
      MONITOR_URLS: monitorUrls.join(' '),
    },
    ready: READY,
    signal,
    onLine: (line) => READY.test(line) || onLine?.(line),
  })
}
