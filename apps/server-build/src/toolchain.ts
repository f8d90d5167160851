import { accessSync, constants, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { plainEnvironment, runCommand } from './command.ts'
import { RedisBuildError } from './errors.ts'

/** The first lines of `cc --version` and `c++ --version`. */
export interface Compilers {
  cc: string
  cxx: string
}

interface Found {
  compilers?: Compilers
  missing: string[]
}

/** Finds the tools for a build by running each: a `cc` that is only a stub counts as missing. */
export async function findTools(env: NodeJS.ProcessEnv): Promise<Found> {
  const tools = [env.CC || 'cc', env.CXX || 'c++', 'make', 'git']
  const versions = await Promise.all(tools.map((tool) => versionOf(tool, env)))
  const missing = tools.filter((_, index) => versions[index] === undefined)
  const [cc, cxx] = versions
  return { missing, ...(cc && cxx && { compilers: { cc, cxx } }) }
}

/** @throws RedisBuildError (TOOLS_MISSING) that says how to install the missing tools. */
export async function requireTools(env: NodeJS.ProcessEnv): Promise<Compilers> {
  const { compilers, missing } = await findTools(env)
  if (compilers && missing.length === 0) return compilers
  throw new RedisBuildError('TOOLS_MISSING', missingToolsMessage(missing, describeSystem(env)))
}

/** @throws RedisBuildError (TOOLS_MISSING) if the headers of OpenSSL are missing. */
export async function requireOpenssl(env: NodeJS.ProcessEnv): Promise<void> {
  const args = ['-E', '-include', 'openssl/ssl.h', '-x', 'c', '/dev/null', '-o', '/dev/null']
  const { code } = await runCommand(env.CC || 'cc', args, { env: plainEnvironment(env) })
  if (code === 0) return
  throw new RedisBuildError(
    'TOOLS_MISSING',
    `A build with TLS needs the headers of OpenSSL, and the compiler does not find openssl/ssl.h.
Install them with one of these:

    apt-get install -y libssl-dev     Debian, Ubuntu
    dnf install -y openssl-devel      Fedora, RHEL
    apk add openssl-dev               Alpine`,
  )
}

async function versionOf(tool: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    const { code, stdout } = await runCommand(tool, ['--version'], { env: plainEnvironment(env) })
    return code === 0 ? stdout.split('\n', 1)[0] : undefined
  } catch {
    return undefined
  }
}

export interface System {
  platform: NodeJS.Platform
  /** ID and ID_LIKE of /etc/os-release, in that order. */
  distributions: string[]
  root: boolean
  /** The installed redis-server, if any. */
  redisServer?: string
}

const installCommands: Record<string, string> = {
  debian: 'apt-get install -y build-essential git',
  fedora: 'dnf install -y gcc gcc-c++ make git',
  rhel: 'dnf install -y gcc gcc-c++ make git',
  alpine: 'apk add build-base linux-headers git',
  arch: 'pacman -S --needed base-devel git',
  suse: 'zypper install -y gcc gcc-c++ make git',
}

/** The error message about missing tools, with the command that installs them. */
export function missingToolsMessage(missing: readonly string[], system: System): string {
  const known = system.distributions.find((name) => name in installCommands)
  const command = known && `${system.root ? '' : 'sudo '}${installCommands[known]}`
  const install =
    system.platform === 'darwin'
      ? 'Install them with:\n\n    xcode-select --install\n'
      : command
        ? `Install them with:\n\n    ${command}\n`
        : 'Install a C and a C++ compiler, make and git with the package manager of your system.\n'
  const installed = system.redisServer ?? '$(command -v redis-server)'
  return `Cannot build Redis: ${missing.join(', ')} cannot be run on this machine.
${install}
Or use another Redis, without our patches:

    REDIS_URL=redis://127.0.0.1:6379 npm start     uses a running Redis
    REDIS_SERVER=${installed} npm start     starts an installed Redis${
      system.redisServer ? '' : ' (none found in the PATH)'
    }`
}

function describeSystem(env: NodeJS.ProcessEnv): System {
  const redisServer = onPath('redis-server', env)
  return {
    platform: process.platform,
    distributions: distributions(),
    root: process.getuid?.() === 0,
    ...(redisServer && { redisServer }),
  }
}

function distributions(): string[] {
  let text: string
  try {
    text = readFileSync('/etc/os-release', 'utf8')
  } catch {
    return []
  }
  const field = (name: string) =>
    new RegExp(`^${name}="?([^"\\n]*)"?$`, 'm').exec(text)?.[1]?.split(' ') ?? []
  return [...field('ID'), ...field('ID_LIKE')]
}

/** The path of the first executable file with this name in the PATH. */
export function onPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const directories = (env.PATH ?? '').split(delimiter).filter((directory) => directory !== '')
  return directories
    .map((directory) => join(directory, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}
