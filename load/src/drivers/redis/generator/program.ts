import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { step } from '@onetrip/stack/terminal.ts'

/**
 * The path of the load generator, which is compiled into `ONETRIP_HOME` on first use and after each change.
 *
 * @throws Problem when there is no C compiler, or not Linux; the reason of `signal`.
 */
export async function generatorProgram(signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  if (process.platform !== 'linux') {
    throw new Problem('The load generator of this experiment needs Linux (epoll).')
  }
  const files = globSync(join(import.meta.dirname, '*.[ch]')).sort()
  const key = hash('sha256', files.map((file) => readFileSync(file, 'utf8')).join(''))
  const home = resolve(process.env.ONETRIP_HOME || join(repository, '.onetrip'), 'load')
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
    const help = 'It needs a C compiler: install gcc or clang, or set CC.'
    throw new Problem(
      `${compiler} could not compile the load generator. ${help}\n${messageOf(cause)}`,
      { cause },
    )
  }
}

/** Set by `isolate.h`. */
const network = process.env.ONETRIP_NETWORK

/** Whether this process runs in a network namespace of its own, see `isolateProcess`. */
export const isIsolated = (): boolean => network === 'own'

/**
 * Restarts this process in a network namespace of its own, if the system allows that: load over TCP then
 * has all ports to itself, undisturbed by closed connections (TIME_WAIT) of other programs and by the
 * connection tracking of a container engine or firewall. Returns only in the restarted process.
 */
export async function isolateProcess(signal: AbortSignal): Promise<void> {
  if (network !== undefined || !process.execve) return
  const generator = await generatorProgram(signal)
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(generator, [generator, 'isolate', ...command], process.env)
}
