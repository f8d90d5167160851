import { copyFile, cp, link, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareTree } from '../build.ts'
import { programsOf } from '../builds.ts'
import { plainEnvironment, runCommand } from '../command.ts'
import { RedisBuildError } from '../errors.ts'
import { namesIn } from '../files.ts'
import type { InstalledBuild } from '../installed.ts'
import type { Job } from '../job.ts'
import { locked } from '../lock.ts'
import { applyPatch, patchesDirectory } from '../patches.ts'
import { selectionFrom, selectSource } from '../sources/select.ts'
import { programPath } from '../status.ts'
import { onPath, requireTools } from '../toolchain.ts'
import { ourFolder } from './suites.ts'

/** The interpreters that upstream's runners look for; they use the last one found. */
const interpreters = ['tclsh8.5', 'tclsh8.6', 'tclsh8.7']

/** Other names of redis-server, under which it is another program. */
const otherNames = ['redis-sentinel', 'redis-check-aof', 'redis-check-rdb']

/** The unpacked tests of upstream, and trees to run them in. */
export interface Workspace {
  /** The source with Debian's patches, including the tests of both. */
  upstream: string
  /** The tests for builds with our patches: upstream's, with the changes and tests in `patches/tests`. */
  patched: string
  /** Creates a tree with the tests, a server and the tools. Its path is short, because it contains sockets. */
  treeFor(build: InstalledBuild): Promise<string>
  remove(): Promise<void>
}

/**
 * @param tls whether Tcl's TLS package is needed.
 * @throws RedisBuildError (TOOLS_MISSING) that says how to install what is missing.
 */
export async function requireTcl(
  env: NodeJS.ProcessEnv,
  { tls = false }: { tls?: boolean } = {},
): Promise<void> {
  const found = interpreters.map((name) => onPath(name, env))
  const interpreter = found.findLast((path) => path !== undefined)
  if (interpreter === undefined) throw new RedisBuildError('TOOLS_MISSING', withoutTcl)
  if (tls && !(await hasTls(interpreter, env))) {
    throw new RedisBuildError('TOOLS_MISSING', withoutTls)
  }
}

async function hasTls(interpreter: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const ask = ['-c', 'echo "package require tls 1.6" | "$1"', 'sh', interpreter]
  const { stderr } = await runCommand('sh', ask, { env: plainEnvironment(env) })
  return stderr === ''
}

const withoutTls = `The tests need the TLS package of Tcl. Install it and OpenSSL with one of these:

    apt-get install -y tcl-tls openssl     Debian, Ubuntu
    dnf install -y tcltls openssl          Fedora, RHEL
    apk add tcl-tls openssl                Alpine`

const withoutTcl = `The tests of Redis need Tcl, but none of ${interpreters.join(', ')} is in the PATH.
Install Tcl with one of these:

    apt-get install -y tcl          Debian, Ubuntu
    dnf install -y tcl              Fedora, RHEL
    apk add tcl                     Alpine
    brew install tcl-tk@8           macOS`

/**
 * Unpacks the source of the builds into a temporary folder.
 *
 * @param tools the build of redis-cli and redis-benchmark, which the tests use.
 * @param modules whether to compile the modules that some tests load.
 * @param tls whether to generate the certificates for tests with TLS.
 * @throws RedisBuildError (SOURCE_UNAVAILABLE if a build has another source).
 */
export async function createWorkspace(
  job: Job,
  builds: readonly InstalledBuild[],
  tools: InstalledBuild,
  { modules, tls }: { modules: boolean; tls: boolean },
): Promise<Workspace> {
  const source = await locked(job, (job) => selectSource(job, selectionFrom(job.env)))
  for (const { build, inputs } of [...builds, tools]) {
    if (
      inputs.archive === source.archive.sha256 &&
      inputs.debian === (source.debian?.sha256 ?? null)
    )
      continue
    throw new RedisBuildError(
      'SOURCE_UNAVAILABLE',
      `The tests are those of ${source.from}, but the build ${build} has another source. Rebuild it: npm run redis -- build ${build}`,
    )
  }
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-upstream-'))
  const remove = () => rm(directory, { recursive: true, force: true, maxRetries: 5 })
  try {
    const upstream = join(directory, 'upstream')
    const patched = join(directory, 'patched')
    await prepareTree(job, source, [], directory, upstream)
    if (modules) await compileModules(job, upstream)
    if (tls) await makeCertificates(job, upstream)
    await copyTests(upstream, patched)
    await addOurs(job, patched)
    let trees = 0
    return {
      upstream,
      patched,
      remove,
      async treeFor(build) {
        const copy = join(directory, String(trees++))
        await copyTests((await needsOurs(job, build)) ? patched : upstream, copy)
        await addPrograms([build, tools], join(copy, 'src'))
        return copy
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Whether a build has a patch with the number of a change to upstream's tests. */
async function needsOurs({ env }: Job, { patches }: InstalledBuild): Promise<boolean> {
  const changes = (await namesIn(join(patchesDirectory(env), 'tests'))).filter(isPatch)
  const numberOf = (name: string) => name.split('-', 1)[0]
  return changes.some((change) => patches.some((name) => numberOf(name) === numberOf(change)))
}

const isPatch = (name: string) => name.endsWith('.patch')

/** Adds the tests of our patches, and changes upstream's tests that do not hold with our patches. */
async function addOurs(job: Job, tree: string): Promise<void> {
  const from = join(patchesDirectory(job.env), 'tests')
  const into = join(tree, 'tests', ourFolder)
  await mkdir(into)
  for (const name of await namesIn(from)) {
    const path = join(from, name)
    if (isPatch(name)) await applyPatch(tree, { name, path }, job)
    else await copyFile(path, join(into, name))
  }
}

async function compileModules(job: Job, tree: string): Promise<void> {
  await requireTools(job.env)
  job.progress.step("Compiling the tests' modules")
  const { code, stdout, stderr } = await runCommand('make', ['-C', 'tests/modules', '-j2'], {
    cwd: tree,
    env: plainEnvironment(job.env),
    signal: job.signal,
  })
  if (code === 0) return
  const end = `${stdout}${stderr}`.trimEnd().split('\n').slice(-30).join('\n')
  throw new RedisBuildError('COMPILE_FAILED', `Could not compile the tests' modules:\n\n${end}`)
}

/**
 * Generates certificates in `tests/tls` with upstream's script. The script would generate Diffie-Hellman
 * parameters for up to a minute; with OpenSSL 3 or newer, those of RFC 7919 are used instead.
 */
async function makeCertificates(job: Job, tree: string): Promise<void> {
  job.progress.step('Generating certificates')
  const file = 'tests/tls/redis.dh'
  const known = `openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out ${file}`
  const script = `mkdir tests/tls && { ${known} || rm -f ${file}; } && utils/gen-test-certs.sh`
  const { code, stdout, stderr } = await runCommand('sh', ['-c', script], {
    cwd: tree,
    env: plainEnvironment(job.env),
    signal: job.signal,
  })
  if (code === 0) return
  throw new RedisBuildError(
    'TOOLS_MISSING',
    `Could not generate certificates (${script}):\n${stdout}${stderr}`,
  )
}

async function copyTests(source: string, tree: string): Promise<void> {
  await mkdir(tree)
  const names = (await readdir(source)).filter((name) => name.startsWith('runtest'))
  for (const name of ['tests', ...names]) {
    await cp(join(source, name), join(tree, name), { recursive: true })
  }
}

/** Uses hard links, not symbolic ones: the path of a running program identifies its tree. */
async function addPrograms(builds: readonly InstalledBuild[], src: string): Promise<void> {
  await mkdir(src)
  for (const build of builds) {
    for (const name of programsOf(build.build)) {
      const program = programPath(build, name)
      const here = join(src, name)
      await link(program, here).catch(() => copyFile(program, here))
    }
  }
  for (const name of otherNames) await symlink('redis-server', join(src, name))
}
