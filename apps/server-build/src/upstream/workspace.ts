import { constants } from 'node:fs'
import { access, copyFile, cp, link, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
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
import { requireTools } from '../toolchain.ts'
import { ourFolder } from './suites.ts'

/** What upstream's runners look for, in this order; the last one found is theirs. */
const interpreters = ['tclsh8.5', 'tclsh8.6', 'tclsh8.7']

/** redis-server under the names by which it is these programs. */
const otherNames = ['redis-sentinel', 'redis-check-aof', 'redis-check-rdb']

/** The tests of upstream, unpacked, and as many trees to run them in as are wanted. */
export interface Workspace {
  /** The source with Debian's patches, and so with upstream's tests and theirs. */
  upstream: string
  /** The tests for builds with our patches: the same, but for what is in `patches/tests`. */
  patched: string
  /** A new tree with the tests, a server and the tools. Its path is short: sockets are in it. */
  treeFor(build: InstalledBuild): Promise<string>
  remove(): Promise<void>
}

/**
 * @param tls whether Tcl needs its package for TLS, too.
 * @throws RedisBuildError (TOOLS_MISSING) which says how to install what is missing.
 */
export async function requireTcl(
  env: NodeJS.ProcessEnv,
  { tls = false }: { tls?: boolean } = {},
): Promise<void> {
  const interpreter = await interpreterIn(env)
  if (interpreter === undefined) throw new RedisBuildError('TOOLS_MISSING', withoutTcl)
  if (tls && !(await hasTls(interpreter, env))) {
    throw new RedisBuildError('TOOLS_MISSING', withoutTls)
  }
}

async function interpreterIn(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const directories = (env.PATH ?? '').split(delimiter).filter((directory) => directory !== '')
  const paths = interpreters
    .toReversed()
    .flatMap((name) => directories.map((directory) => join(directory, name)))
  for (const path of paths) {
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (runs) return path
  }
  return undefined
}

async function hasTls(interpreter: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const ask = ['-c', 'echo "package require tls 1.6" | "$1"', 'sh', interpreter]
  const { stderr } = await runCommand('sh', ask, { env: plainEnvironment(env) })
  return stderr === ''
}

const withoutTls = `The tests need a package of Tcl for TLS. Install it, with OpenSSL, with one of these:

    apt-get install -y tcl-tls openssl     Debian, Ubuntu
    dnf install -y tcltls openssl          Fedora, RHEL
    apk add tcl-tls openssl                Alpine`

const withoutTcl = `The tests of Redis are written in Tcl, and there is no ${interpreters.join(', ')} on the PATH.
Install it with one of these:

    apt-get install -y tcl          Debian, Ubuntu
    dnf install -y tcl              Fedora, RHEL
    apk add tcl                     Alpine
    brew install tcl-tk@8           macOS`

/**
 * Unpacks the source that the builds were made of, in the folder for temporary files.
 *
 * @param tools the build of redis-cli and redis-benchmark, which the tests use as well.
 * @param modules whether the modules that some tests load are compiled, too.
 * @param tls whether the certificates are made that tests with TLS use.
 * @throws RedisBuildError (SOURCE_UNAVAILABLE when it is not the source of all builds).
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
      `The ${build} build was not made of ${source.from}, whose tests would run. Make it anew: npm run redis -- build ${build}`,
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

/** Whether a build has a patch that upstream's tests are changed for: both have the same number. */
async function needsOurs({ env }: Job, { patches }: InstalledBuild): Promise<boolean> {
  const changes = (await namesIn(join(patchesDirectory(env), 'tests'))).filter(isPatch)
  const numberOf = (name: string) => name.split('-', 1)[0]
  return changes.some((change) => patches.some((name) => numberOf(name) === numberOf(change)))
}

const isPatch = (name: string) => name.endsWith('.patch')

/** Adds the tests beside our patches, and changes those of upstream that cannot hold any more. */
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
  throw new RedisBuildError('COMPILE_FAILED', `The modules of the tests do not compile:\n\n${end}`)
}

/**
 * With a script of upstream's, into `tests/tls`. It would look for parameters for Diffie-Hellman for up to a
 * minute, if those of RFC 7919 were not there already (from OpenSSL 3 on).
 */
async function makeCertificates(job: Job, tree: string): Promise<void> {
  job.progress.step('Making certificates')
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
    `No certificates can be made (${script}):\n${stdout}${stderr}`,
  )
}

async function copyTests(source: string, tree: string): Promise<void> {
  await mkdir(tree)
  const names = (await readdir(source)).filter((name) => name.startsWith('runtest'))
  for (const name of ['tests', ...names]) {
    await cp(join(source, name), join(tree, name), { recursive: true })
  }
}

/** Not symbolic links: the path of a program tells which tree a process belongs to. */
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
