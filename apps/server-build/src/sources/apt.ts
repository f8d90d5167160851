import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '../command.ts'
import { RedisBuildError } from '../errors.ts'
import type { Job } from '../job.ts'
import { releases } from '../releases.ts'
import { type Source, type SourceFile, verify } from './source.ts'

/** A revision of Debian's source package `redis` whose upstream archive is a known release. */
interface Revision {
  version: string
  archive: SourceFile
  debian: SourceFile
}

const keyrings = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`)

/**
 * Downloads the newest revision of Redis in Debian that is a known release, from the mirrors of this machine. Needs
 * no root and does not change the machine's apt. apt verifies Debian's signatures, so the hashes can be trusted.
 *
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) with apt's error message.
 */
export async function fetchFromDebian(job: Job, into: string): Promise<Source> {
  const configuration = await privateApt(job, join(job.home.temporary, 'apt'))
  const update = await apt(job, 'apt-get', ['-c', configuration, '-q', 'update'])
  const failure = /^[EW]: (.*)/m.exec(update.stderr)?.[1]
  const index = await apt(job, 'apt-cache', [
    '-c',
    configuration,
    'showsrc',
    '--only-source',
    'redis',
  ])
  const revision = newestRevision(index.stdout)
  if (!revision) throw unavailable(failure ?? 'it has no known release of Redis')
  if (failure) job.progress.note(`WARNING: Debian may have a newer source: ${failure}`)

  const { version, archive, debian } = revision
  const args = ['source', '--download-only', '--only-source', `redis=${version}`]
  const { code, stderr } = await apt(job, 'apt-get', ['-c', configuration, '-q', ...args], into)
  if (code !== 0) throw unavailable(stderr.trim())
  for (const { file, sha256 } of [archive, debian]) await verify(join(into, file), sha256, file)
  return { from: `Debian ${version.replace(/^\d+:/, '')}`, archive, debian }
}

/** The newest revision with a known upstream archive in a source index. */
export function newestRevision(index: string): Revision | undefined {
  const revisions = index.split(/\n\n+/).flatMap((paragraph): Revision[] => {
    const version = /^Version: (.+)$/m.exec(paragraph)?.[1]
    const files = [...paragraph.matchAll(/^ ([0-9a-f]{64}) \d+ (\S+)$/gm)].map(
      ([, sha256 = '', file = '']) => ({ sha256, file }),
    )
    const archive = files.find(({ sha256 }) => releases.some((known) => known.sha256 === sha256))
    const debian = files.find(({ file }) => file.endsWith('.debian.tar.xz'))
    return version && archive && debian ? [{ version, archive, debian }] : []
  })
  const byVersion = (one: Revision, other: Revision) =>
    other.version.localeCompare(one.version, 'en', { numeric: true })
  return revisions.sort(byVersion)[0]
}

/** Writes an apt configuration that uses only files in a folder. Returns its path. */
async function privateApt(job: Job, directory: string): Promise<string> {
  const { stdout } = await apt(job, 'apt-get', [
    'indextargets',
    '--format',
    '$(SITE)',
    'Created-By: Packages',
  ])
  // Debian's cloud images have a mirror list (.list) instead of a URL.
  const mirrors = new Set(stdout.match(/^.*\/debian(-security)?(\.list)?\/?$/gm))
  const keyring = keyrings.find((path) => existsSync(path))
  if (!keyring || mirrors.size === 0) throw unavailable('apt has no Debian mirror configured')
  const sources = [...mirrors].flatMap((mirror) => {
    const suites = mirror.includes('-security') ? ['trixie-security'] : ['trixie', 'forky']
    return suites.map((suite) => `deb-src [signed-by=${keyring}] ${mirror} ${suite} main\n`)
  })
  await mkdir(join(directory, 'state', 'lists', 'partial'), { recursive: true })
  await mkdir(join(directory, 'cache', 'archives', 'partial'), { recursive: true })
  await writeFile(join(directory, 'sources.list'), sources.join(''))
  const configuration = join(directory, 'apt.conf')
  await writeFile(
    configuration,
    `Dir::State "${directory}/state";
Dir::Cache "${directory}/cache";
Dir::Etc::SourceList "${directory}/sources.list";
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

async function apt({ env, signal }: Job, command: string, args: readonly string[], cwd?: string) {
  try {
    const inEnglish = { ...env, LC_ALL: 'C' }
    return await runCommand(command, args, { env: inEnglish, signal, ...(cwd && { cwd }) })
  } catch {
    signal.throwIfAborted()
    throw unavailable(`${command} cannot be run`)
  }
}

function unavailable(why: string): RedisBuildError {
  return new RedisBuildError('SOURCE_UNAVAILABLE', `Debian: ${why}`)
}
