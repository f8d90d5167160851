import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Program, startProgram } from '@onetrip/stack/program.ts'
import { onTestFinished } from 'vitest'
import { ensureBuilt } from '../src/build.ts'
import type { ServerBuild, Variant } from '../src/builds.ts'
import { homeOf } from '../src/home.ts'
import { programPath } from '../src/installed.ts'
import { createProgress } from '../src/progress.ts'
import { freePort, openSockets } from '../test/real-redis.ts'

export interface FaultServer {
  readonly program: Program
  readonly port: number
  readonly directory: string
  /** Its output: the log and the reports of a sanitizer. */
  readonly lines: readonly string[]
  /** The number of its open sockets, including listeners. */
  sockets(): Promise<number>
}

/** The redis-server of a build. Builds it if it is missing. */
export async function serverOf(build: ServerBuild, variant: Variant = {}): Promise<string> {
  const made = await ensureBuilt(
    {
      home: homeOf(process.env),
      env: process.env,
      progress: createProgress(),
      signal: new AbortController().signal,
    },
    build,
    variant,
  )
  return programPath(made, 'redis-server')
}

interface StartOptions {
  env?: NodeJS.ProcessEnv
  /** Data directory, which is kept after the test. Default: a new one, removed after the test. */
  directory?: string
}

/** Starts a redis-server for the current test, with its own port and folder. */
export async function startServer(
  server: string,
  config: Record<string, string>,
  { env, directory }: StartOptions = {},
): Promise<FaultServer> {
  const port = await freePort()
  const own = directory ?? (await mkdtemp(join(tmpdir(), 'onetrip-fault-')))
  const lines: string[] = []
  const settings = { save: '', appendonly: 'no', 'protected-mode': 'no', ...config }
  const program = await startProgram({
    name: 'redis-server',
    command: server,
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', own],
      ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    ],
    env: { ...process.env, ...env },
    ready: /ready to accept connections tcp/i,
    readyTimeoutMs: 60_000,
    onLine: (line) => lines.push(line),
  })
  onTestFinished(async () => {
    await program.stop(30_000)
    if (directory === undefined) await rm(own, { recursive: true, force: true })
  })
  return {
    program,
    port,
    directory: own,
    lines,
    sockets: () => openSockets(program.pid),
  }
}
