import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Finished, runCommand } from '../command.ts'
import { RedisBuildError } from '../errors.ts'
import type { Job } from '../job.ts'
import { releaseOf } from '../releases.ts'
import { withoutEpoch } from './source.ts'

/** A revision of Debian's source package `redis` that we know the upstream archive of. */
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
  /** The newest first. */
  revisions: DebianRevision[]
  /** Why some suites could not be asked. */
  failures: string[]
}

const suites = ['trixie-security', 'trixie', 'forky']

const keyrings = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`)

/**
 * Asks Debian which revisions of Redis it has. Works without root and leaves the machine's own apt
 * as it is: lists and caches go to `scratch`, and the hooks that the machine has for after an update
 * do not run. Signatures are checked by apt with Debian's keys, so the hashes can be relied on.
 *
 * @param suite ask only this one.
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) where apt does not lead to Debian at all.
 */
export async function askDebian(
  job: Job,
  scratch: string,
  suite: string | undefined,
): Promise<DebianOffer> {
  const keyring = keyrings.find((path) => existsSync(path))
  const mirrors = await mirrorsOf(job)
  if (!keyring || mirrors.length === 0) {
    const lacks = keyring ? 'is not set up for a Debian mirror' : `has no ${keyrings[0]}`
    throw new RedisBuildError('SOURCE_UNAVAILABLE', `apt on this machine ${lacks}`)
  }
  const failures: string[] = []
  const revisions: DebianRevision[] = []
  // Each suite has an apt state of its own: one that is out of order does not take the others along.
  await Promise.all(
    (suite ? [suite] : suites).map(async (name) => {
      const mirror = mirrors.find((site) => isSecurity(site) === isSecurity(name))
      if (!mirror) {
        failures.push(`Debian ${name}: apt is not set up for its mirror`)
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
 * Fetches a revision's archive and patches into a folder.
 *
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) with apt's own words.
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

/** The addresses of the Debian mirrors that this machine uses. */
async function mirrorsOf({ env, signal }: Job): Promise<string[]> {
  try {
    const { stdout } = await runCommand(
      'apt-get',
      ['indextargets', '--format', '$(SITE)', 'Created-By: Packages'],
      { env: inEnglish(env), signal },
    )
    // A mirror list, as Debian's images for clouds have it, is as good as an address.
    return stdout.split('\n').filter((site) => /\/debian(-security)?(\.list)?\/?$/.test(site))
  } catch {
    signal.throwIfAborted()
    throw new RedisBuildError('SOURCE_UNAVAILABLE', 'there is no apt on this machine')
  }
}

function isSecurity(siteOrSuite: string): boolean {
  return siteOrSuite.includes('-security')
}

/** Writes the configuration of an apt that keeps to a folder, and returns its path. */
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

/** Reads the revisions with a known upstream archive from the paragraphs of a source index. */
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
