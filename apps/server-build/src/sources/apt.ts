import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Finished, runCommand } from '../command.ts'
import { RedisBuildError } from '../errors.ts'
import type { Job } from '../job.ts'
import { releaseOf } from '../releases.ts'
import { withoutEpoch } from './source.ts'

/** A revision of Debian's source package `redis` whose upstream archive is a known release. */
export interface DebianRevision {
  version: string
  suite: string
  redisVersion: string
  archive: { file: string; sha256: string }
  patches: { file: string; sha256: string }
  /** The apt configuration that found it. */
  configuration: string
}

export interface DebianOffer {
  /** Newest first. */
  revisions: DebianRevision[]
  /** Errors of suites that could not be read. */
  failures: string[]
}

const suites = ['trixie-security', 'trixie', 'forky']

const keyrings = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`)

/**
 * Lists the revisions of Redis that Debian offers. Needs no root and does not change the machine's apt: lists
 * and caches go to `scratch`, and the machine's hooks do not run. apt verifies Debian's signatures, so the
 * hashes can be trusted.
 *
 * @param suite read only this suite.
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) if apt has no Debian mirror.
 */
export async function askDebian(
  job: Job,
  scratch: string,
  suite: string | undefined,
): Promise<DebianOffer> {
  const keyring = keyrings.find((path) => existsSync(path))
  const mirrors = await mirrorsOf(job)
  if (!keyring || mirrors.length === 0) {
    const lacks = keyring ? 'has no Debian mirror configured' : `lacks ${keyrings[0]}`
    throw new RedisBuildError('SOURCE_UNAVAILABLE', `apt on this machine ${lacks}`)
  }
  const failures: string[] = []
  const revisions: DebianRevision[] = []
  // Each suite has its own apt state, so that an error in one does not affect the others.
  await Promise.all(
    (suite ? [suite] : suites).map(async (name) => {
      const mirror = mirrors.find((site) => isSecurity(site) === isSecurity(name))
      if (!mirror) {
        failures.push(`Debian ${name}: apt has no mirror for this suite configured`)
        return
      }
      const line = `deb-src [signed-by=${keyring}] ${mirror} ${name} main`
      const configuration = await privateApt(join(scratch, name), line)
      const update = await aptGet(job, configuration, ['update', '--error-on=any'])
      if (update.code !== 0) failures.push(`Debian ${name}: ${firstError(update)}`)
      else revisions.push(...(await revisionsIn(job, configuration, name)))
    }),
  )
  job.signal.throwIfAborted()
  return { revisions: await newestFirst(revisions), failures }
}

/**
 * Downloads the archive and the patches of a revision into a folder.
 *
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) with apt's error message.
 */
export async function fetchRevision(
  job: Job,
  { version, suite, configuration }: DebianRevision,
  into: string,
): Promise<void> {
  const args = ['source', '--download-only', '--only-source', `redis=${version}`]
  const fetched = await aptGet(job, configuration, args, into)
  if (fetched.code === 0) return
  throw new RedisBuildError(
    'SOURCE_UNAVAILABLE',
    `Debian ${withoutEpoch(version)} (${suite}): ${firstError(fetched)}`,
  )
}

/** The URLs of the Debian mirrors that this machine uses. */
async function mirrorsOf({ env, signal }: Job): Promise<string[]> {
  try {
    const { stdout } = await runCommand(
      'apt-get',
      ['indextargets', '--format', '$(SITE)', 'Created-By: Packages'],
      { env: inEnglish(env), signal },
    )
    // Debian's cloud images have a mirror list (.list) instead of a URL.
    return stdout.split('\n').filter((site) => /\/debian(-security)?(\.list)?\/?$/.test(site))
  } catch {
    signal.throwIfAborted()
    throw new RedisBuildError('SOURCE_UNAVAILABLE', 'this machine has no apt')
  }
}

function isSecurity(siteOrSuite: string): boolean {
  return siteOrSuite.includes('-security')
}

/** Writes an apt configuration that uses only files in a folder. Returns its path. */
async function privateApt(directory: string, sourcesLine: string): Promise<string> {
  await mkdir(join(directory, 'state', 'lists', 'partial'), { recursive: true })
  await mkdir(join(directory, 'cache', 'archives', 'partial'), { recursive: true })
  const sources = join(directory, 'sources.list')
  await writeFile(sources, `${sourcesLine}\n`)
  const configuration = join(directory, 'apt.conf')
  await writeFile(
    configuration,
    `Dir::State "${join(directory, 'state')}";
Dir::Cache "${join(directory, 'cache')}";
Dir::Etc::SourceList "${sources}";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`,
  )
  return configuration
}

async function revisionsIn(
  { env, signal }: Job,
  configuration: string,
  suite: string,
): Promise<DebianRevision[]> {
  const { stdout } = await runCommand(
    'apt-cache',
    ['-c', configuration, 'showsrc', '--only-source', 'redis'],
    { env: inEnglish(env), signal },
  )
  return revisionsOf(stdout).map((revision) => ({ ...revision, suite, configuration }))
}

/** Reads the revisions with a known upstream archive from a source index. */
export function revisionsOf(index: string): Omit<DebianRevision, 'suite' | 'configuration'>[] {
  return index.split(/\n\n+/).flatMap((paragraph) => {
    const version = /^Version: (.+)$/m.exec(paragraph)?.[1]
    const files = [...paragraph.matchAll(/^ ([0-9a-f]{64}) \d+ (\S+)$/gm)].map(
      ([, sha256 = '', file = '']) => ({ sha256, file }),
    )
    const archive = files.find(({ file }) => file.endsWith('.orig.tar.gz'))
    const patches = files.find(({ file }) => file.endsWith('.debian.tar.xz'))
    const release = archive && releaseOf(archive.sha256)
    if (!version || !patches || !release) return []
    return [{ version, redisVersion: release.version, archive, patches }]
  })
}

async function newestFirst(revisions: readonly DebianRevision[]): Promise<DebianRevision[]> {
  const sorted: DebianRevision[] = []
  for (const revision of revisions) {
    let place = 0
    for (const other of sorted) {
      if (!(await isNewer(other.version, revision.version))) break
      place += 1
    }
    sorted.splice(place, 0, revision)
  }
  return sorted
}

async function isNewer(version: string, than: string): Promise<boolean> {
  const { code } = await runCommand('dpkg', ['--compare-versions', version, 'gt', than])
  return code === 0
}

async function aptGet(
  { env, signal }: Job,
  configuration: string,
  args: readonly string[],
  cwd?: string,
): Promise<Finished> {
  return await runCommand('apt-get', ['-c', configuration, '-q', ...args], {
    env: inEnglish(env),
    signal,
    ...(cwd && { cwd }),
  })
}

function inEnglish(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, LC_ALL: 'C' }
}

function firstError({ code, stderr }: Finished): string {
  const line = stderr.split('\n').find((text) => text.startsWith('E: '))
  return line?.slice('E: '.length) ?? `apt-get ended with exit code ${code}`
}
