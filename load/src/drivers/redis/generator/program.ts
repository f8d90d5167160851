import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { step } from '@onetrip/stack/terminal.ts'

/**
 * The path of the load generator, which is compiled on first use and after each change of its source,
 * into `ONETRIP_HOME`.
 *
 * @throws Problem when there is no C compiler, or not Linux; the reason of `signal`.
 */
export async function generatorProgram(signal: AbortSignal): Promise<string> {
  if (process.platform !== 'linux') {
    throw new Problem('The load generator of this experiment needs Linux (epoll).')
  }
  const names = (await readdir(import.meta.dirname)).filter((name) => /\.[ch]$/.test(name))
  const files = names.toSorted().map((name) => join(import.meta.dirname, name))
  const hash = createHash('sha256')
  for (const file of files) hash.update(await readFile(file))
  const home = resolve(process.env.ONETRIP_HOME || join(repository, '.onetrip'), 'load')
  const path = join(home, `generator-${hash.digest('hex').slice(0, 12)}`)
  if (existsSync(path)) return path
  await mkdir(home, { recursive: true })
  const sources = files.filter((file) => file.endsWith('.c'))
  await step('Compiling the load generator', () => compile(sources, path, signal))
  return path
}

async function compile(sources: string[], path: string, signal: AbortSignal): Promise<void> {
  const compiler = process.env.CC || 'cc'
  const draft = `${path}.${process.pid}.tmp`
  const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror']
  try {
    await promisify(execFile)(compiler, [...flags, '-o', draft, ...sources], { signal })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    signal.throwIfAborted()
    throw new Problem(
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `The load generator needs a C compiler, but ${compiler} cannot be run: install gcc or clang, or set CC.`
        : `${compiler} could not compile the load generator:\n${messageOf(error)}`,
      { cause: error },
    )
  }
}

/** Set by `isolate.c`. */
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
  signal.throwIfAborted()
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(generator, [generator, 'isolate', ...command], process.env)
}
