import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { step } from '@onetrip/stack/terminal.ts'

/** The folder of compiled programs. */
export const programsFolder = () =>
  resolve(process.env.ONETRIP_HOME || join(repository, '.onetrip'), 'load')

/**
 * Compiles the load generator into `ONETRIP_HOME`, if that version does not exist yet, and returns its path.
 *
 * @throws Problem without a C compiler, or on other systems than Linux; the reason of `signal`.
 */
export async function generatorProgram(signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  if (process.platform !== 'linux') {
    throw new Problem('The load generator of this experiment needs Linux (epoll).')
  }
  const files = globSync(join(import.meta.dirname, '*.[ch]')).sort()
  const key = hash('sha256', files.map((file) => readFileSync(file, 'utf8')).join(''))
  const home = programsFolder()
  const path = join(home, `generator-${key.slice(0, 12)}`)
  if (existsSync(path)) return path
  await mkdir(home, { recursive: true })
  await step('Compiling the load generator', () => compile(path, signal))
  return path
}

async function compile(path: string, signal: AbortSignal): Promise<void> {
  const compiler = process.env.CC || 'cc'
  const draft = `${path}.${process.pid}.tmp`
  const source = join(import.meta.dirname, 'generator.c')
  const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror']
  try {
    await promisify(execFile)(compiler, [...flags, '-o', draft, source], { signal })
    await rename(draft, path)
  } catch (cause) {
    await rm(draft, { force: true })
    signal.throwIfAborted()
    const help = 'Install gcc or clang, or set CC to a C compiler.'
    throw new Problem(
      `${compiler} could not compile the load generator. ${help}\n${messageOf(cause)}`,
      { cause },
    )
  }
}

/** Set by `isolate.h`. */
const network = process.env.ONETRIP_NETWORK

/** Whether this process runs in its own network namespace, see `isolateProcess`. */
export const isIsolated = (): boolean => network === 'own'

/**
 * Restarts this process in its own network namespace, if the system allows it. Other programs then do not use the
 * same ports, and their closed connections (TIME_WAIT) and the connection tracking of a container engine or
 * firewall do not affect load over TCP. After a restart, this function returns in the new process only.
 */
export async function isolateProcess(signal: AbortSignal): Promise<void> {
  if (network !== undefined || !process.execve) return
  const generator = await generatorProgram(signal)
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(generator, [generator, 'isolate', ...command], process.env)
}
