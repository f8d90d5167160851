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

/** @throws RedisBuildError (TOOLS_MISSING) that says what to install. */
export async function requireTools(env: NodeJS.ProcessEnv): Promise<Compilers> {
  const { compilers, missing } = await findTools(env)
  if (compilers && missing.length === 0) return compilers
  throw new RedisBuildError(
    'TOOLS_MISSING',
    `Cannot build Redis: ${missing.join(', ')} cannot be run on this machine.
Install a C and a C++ compiler, make and git; on Debian and Ubuntu:

    apt-get install -y build-essential git

Or use another Redis, without our patches:

    REDIS_SERVER=$(command -v redis-server) npm start     starts an installed Redis (works for npm run load, too)
    REDIS_URL=redis://127.0.0.1:6379 npm start            uses a running Redis`,
  )
}

/** @throws RedisBuildError (TOOLS_MISSING) if the headers of OpenSSL are missing. */
export async function requireOpenssl(env: NodeJS.ProcessEnv): Promise<void> {
  const args = ['-E', '-include', 'openssl/ssl.h', '-x', 'c', '/dev/null', '-o', '/dev/null']
  const { code } = await runCommand(env.CC || 'cc', args, { env: plainEnvironment(env) })
  if (code === 0) return
  throw new RedisBuildError(
    'TOOLS_MISSING',
    'A build with TLS needs the headers of OpenSSL (on Debian and Ubuntu: apt-get install -y libssl-dev).',
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
