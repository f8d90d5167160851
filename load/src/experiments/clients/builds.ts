import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { step } from '@onetrip/stack/terminal.ts'
import { programsFolder } from '../../drivers/redis/generator/program.ts'

export const folder = join(repository, 'load/clients')

interface Build {
  label: string
  /** Run in the folder of `load/clients` with the same name, which has the versions of the packages. */
  command: readonly string[]
  program: string
  /** Prints versions, in lines that `versions` matches. */
  facts: readonly string[]
  versions: RegExp
}

const built = (...path: string[]) => join(programsFolder(), ...path)
const goProgram = built('go-clients')
const bunPackage = `bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`
const bun = join(folder, 'bun/node_modules/@oven', bunPackage, 'bin/bun')

/** What clients need that do not run in Node. */
export const builds = {
  go: {
    label: 'Go',
    command: ['go', 'build', '-buildvcs=false', '-o', goProgram, '.'],
    program: goProgram,
    facts: ['go', 'version', '-m', goProgram],
    versions: /(go1\S+)$|redis\/((?:rueidis|go-redis)\S*\s+v\S+)/gm,
  },
  rust: {
    label: 'Rust',
    command: ['cargo', 'build', '--release', '--locked', '--target-dir', built('rust')],
    program: built('rust/release/onetrip-clients'),
    facts: ['cargo', 'tree', '--locked', '--depth=1'],
    versions: /(redis v\S+)/g,
  },
  bun: {
    label: 'Bun',
    // Not a dependency of the repository, because it is 100 MB.
    command: ['npm', 'install', '--no-save', '--no-audit', '--no-fund'],
    program: bun,
    facts: [bun, '--version'],
    versions: /(.+)/g,
  },
} satisfies Record<string, Build>

export type Runtime = keyof typeof builds

/**
 * Builds clients that do not run in Node.
 *
 * @returns the versions of language and clients; null if the language is not installed.
 * @throws Problem when the build fails; the reason of `signal`.
 */
export async function build(runtime: Runtime, signal: AbortSignal): Promise<string | null> {
  const { label, command, facts, versions } = builds[runtime]
  await mkdir(programsFolder(), { recursive: true })
  const run = async ([file = '', ...args]: readonly string[]) =>
    (await promisify(execFile)(file, args, { cwd: join(folder, runtime), signal })).stdout
  try {
    await step(`Building the clients for ${label}`, () => run(command))
    const found = (await run(facts)).matchAll(versions)
    return [...found].map(([, ...parts]) => parts.join('').replace('\t', ' ')).join(', ')
  } catch (cause) {
    signal.throwIfAborted()
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    const help = 'Leave them out with --clients, or check the access to their packages.'
    throw new Problem(`The clients for ${label} could not be built. ${help}\n${messageOf(cause)}`, {
      cause,
    })
  }
}
