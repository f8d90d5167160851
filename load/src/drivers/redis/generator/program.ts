import { createHash } from 'node:crypto'
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repository } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Program, startProgram } from '@onetrip/stack/program.ts'
import { step } from '@onetrip/stack/terminal.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Set by `isolate.c`. */
const ISOLATED = 'ONETRIP_NETWORK'

/**
 * The path of the load generator, which is compiled on first use and after each change of its source,
 * into `ONETRIP_HOME`.
 *
 * @throws Problem when there is no C compiler, or not Linux; the reason of `signal`.
 */
export async function generatorProgram(signal?: AbortSignal): Promise<string> {
  if (process.platform !== 'linux') {
    throw new Problem('The load generator of this experiment needs Linux (epoll).')
  }
  const names = (await readdir(folder)).filter((name) => /\.[ch]$/.test(name)).toSorted()
  const hash = createHash('sha256')
  for (const name of names) hash.update(name).update(await readFile(join(folder, name)))
  const home = resolve(process.env.ONETRIP_HOME || join(repository, '.onetrip'), 'load')
  const path = join(home, `generator-${hash.digest('hex').slice(0, 12)}`)
  const there = await access(path).then(
    () => true,
    () => false,
  )
  if (there) return path
  await mkdir(home, { recursive: true })
  const sources = names.filter((name) => name.endsWith('.c')).map((name) => join(folder, name))
  await step('Compiling the load generator', () => compile(sources, path, signal))
  return path
}

async function compile(sources: string[], path: string, signal?: AbortSignal): Promise<void> {
  const compiler = process.env.CC || 'cc'
  const draft = `${path}.${process.pid}.tmp`
  const output: string[] = []
  let program: Program
  try {
    program = await startProgram({
      name: compiler,
      command: compiler,
      args: ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', draft, ...sources],
      ready: async () => {},
      onLine: (line) => output.push(line),
      ...(signal && { signal }),
    })
  } catch (error) {
    signal?.throwIfAborted()
    throw new Problem(
      `The load generator needs a C compiler, but ${compiler} cannot be run: install gcc or clang, or set CC.`,
      { cause: error },
    )
  }
  const { code } = await program.exited
  if (code === 0) return await rename(draft, path)
  await rm(draft, { force: true })
  throw new Problem(`${compiler} could not compile the load generator:\n${output.join('\n')}`)
}

/** Whether this process runs in a network namespace of its own, made by `isolateProcess()`. */
export function isIsolated(): boolean {
  return process.env[ISOLATED] === 'own'
}

/**
 * Begins this process anew in a network namespace of its own, if the system allows that: load over TCP
 * then has all ports to itself, and neither the closed connections (TIME_WAIT) of other programs nor
 * the connection tracking of a container engine or firewall distorts it.
 *
 * Returns only when the process has been begun anew already.
 */
export async function isolateProcess(signal: AbortSignal): Promise<void> {
  if (process.env[ISOLATED] !== undefined || !process.execve) return
  const generator = await generatorProgram(signal)
  signal.throwIfAborted()
  const [script = '', ...args] = process.argv.slice(1)
  process.execve(
    generator,
    [generator, 'isolate', process.execPath, ...process.execArgv, script, ...args],
    process.env,
  )
}
