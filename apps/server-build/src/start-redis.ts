import { mkdir, readFile, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerBuild } from './builds.ts'
import { runCommand } from './command.ts'
import { RedisBuildError } from './errors.ts'
import { dataDirectory } from './home.ts'
import { type InstalledBuild, lackOfFixes, programPath, shortKey } from './installed.ts'
import type { Job } from './job.ts'
import { passwordFile, writeUsers } from './users.ts'

export interface RunOptions {
  /** 0: no TCP. */
  port: number
  /** Addresses, separated by spaces or commas. */
  bind: string
  unixsocket?: string | undefined
  /** Default: `$ONETRIP_HOME/redis/data/<build>`. */
  dir?: string
  /** Including the main thread; 1: off. Default: by container/io-threads.sh. */
  ioThreads?: number
  /** Folder of the passwords of `users.acl`; missing ones are generated. Default: no users, no passwords. */
  secrets?: string | undefined
  /** Run a node of a cluster: adds `cluster.conf` and the users of `cluster.acl`. */
  cluster?: boolean
}

export interface ServerCommand {
  program: string
  args: string[]
}

const configuration = fileURLToPath(new URL('../redis.conf', import.meta.url))
const ioThreadsRule = fileURLToPath(new URL('../container/io-threads.sh', import.meta.url))
const clusterConfiguration = fileURLToPath(new URL('../cluster.conf', import.meta.url))

/**
 * Prepares the start of a server: writes its configuration, and checks that no other server uses the same files.
 *
 * @param made returns the build; not called if there is an installed `REDIS_SERVER`, which is used then.
 * @param extra arguments for redis-server, which take precedence.
 * @throws RedisBuildError (SERVER_UNUSABLE, or USAGE if `REDIS_IO_THREADS` is invalid), or what `made` throws.
 */
export async function serverCommand(
  job: Job,
  made: () => Promise<InstalledBuild>,
  options: RunOptions & { build: ServerBuild },
  extra: readonly string[],
): Promise<ServerCommand> {
  const { build } = options
  const dir = resolve(options.dir ?? dataDirectory(job.home, build))
  const socket = options.unixsocket && resolve(options.unixsocket)
  const threads = String(options.ioThreads ?? (await usualIoThreads(job)))
  const { program, version } = await serverProgram(job, build, made)
  await mkdir(dir, { recursive: true })
  await refuseSecondServer(dir, socket)
  const copy = join(dir, 'onetrip-redis.conf')
  let settings = configurationFor(version, await readFile(configuration, 'utf8'))
  if (options.cluster) settings += await readFile(clusterConfiguration, 'utf8')
  const users = join(dir, 'onetrip-users.acl')
  if (options.secrets !== undefined) {
    if (isOld(version)) {
      throw new RedisBuildError(
        'SERVER_UNUSABLE',
        `--secrets needs Redis 8, because users.acl names its commands; REDIS_SERVER is ${version}.`,
      )
    }
    const secrets = resolve(options.secrets)
    await writeUsers(secrets, users, options.cluster)
    if (options.cluster) {
      const password = (await readFile(passwordFile(secrets, 'replication'), 'utf8')).trim()
      settings += `\nmasteruser replication\nmasterauth ${password}\n`
    }
  }
  await rm(copy, { force: true }) // an existing file would keep its mode
  await writeFile(copy, settings, { mode: 0o600 })
  const args = [copy, '--port', String(options.port), '--dir', dir, '--io-threads', threads]
  args.push('--bind', ...options.bind.split(/[\s,]+/).filter((address) => address !== ''))
  if (socket) args.push('--unixsocket', socket)
  if (options.secrets !== undefined) args.push('--aclfile', users)
  return { program, args: [...args, ...extra] }
}

/**
 * The number of threads without `ioThreads`.
 *
 * @throws RedisBuildError (USAGE) if `REDIS_IO_THREADS` is invalid.
 */
export async function usualIoThreads({
  env,
  signal,
}: Pick<Job, 'env' | 'signal'>): Promise<string> {
  const { code, stdout, stderr } = await runCommand('/bin/sh', [ioThreadsRule], { env, signal })
  if (code !== 0) throw new RedisBuildError('USAGE', stderr.trim())
  return stdout.trim()
}

async function serverProgram(
  job: Job,
  build: ServerBuild,
  made: () => Promise<InstalledBuild>,
): Promise<{ program: string; version: string }> {
  const installed = job.env.REDIS_SERVER
  if (installed !== undefined) {
    const version = await versionOfInstalled(installed, job.signal)
    job.progress.note(
      `Using Redis ${version} at ${installed} (REDIS_SERVER), NOT the ${build} build of Onetrip.`,
    )
    return { program: installed, version }
  }
  const installedBuild = await made()
  const { redisVersion, key, source } = installedBuild
  const lack = lackOfFixes(source)
  if (lack) job.progress.note(lack)
  job.progress.note(`Redis ${redisVersion}, build ${build}-${shortKey(key)} (${source.from})`)
  return { program: programPath(installedBuild, 'redis-server'), version: redisVersion }
}

function isOld(version: string): boolean {
  return Number.parseInt(version, 10) < 8
}

/** Removes settings that an older server (`REDIS_SERVER`) would reject at its start. */
export function configurationFor(version: string, text: string): string {
  return isOld(version) ? text.replaceAll(/^max-new-connections-per-cycle .*\n/gm, '') : text
}

async function versionOfInstalled(program: string, signal: AbortSignal): Promise<string> {
  let why = 'its --version is not that of a redis-server'
  try {
    const { stdout } = await runCommand(program, ['--version'], { signal })
    const version = /\bv=(\d+\.\d+\S*)/.exec(stdout)?.[1]
    if (version) return version
  } catch (error) {
    signal.throwIfAborted()
    why = program === '' ? 'it is empty; unset it to start our build' : String(error) // missing or not executable
  }
  throw new RedisBuildError('SERVER_UNUSABLE', `REDIS_SERVER=${program} cannot be used: ${why}.`)
}

/** Two servers on one data directory would overwrite each other's append-only file. */
async function refuseSecondServer(dir: string, socket: string | undefined): Promise<void> {
  const pid = await serverOn(dir)
  if (pid !== undefined) {
    throw new RedisBuildError(
      'SERVER_UNUSABLE',
      `A Redis (process ${pid}) is already using ${dir}. Stop it, or choose another --dir.`,
    )
  }
  // Redis removes a stale socket file at its start, but also one that is in use.
  if (socket && (await answers(socket))) {
    throw new RedisBuildError(
      'SERVER_UNUSABLE',
      `A server is already listening on ${socket}. Stop it, or choose another --unixsocket.`,
    )
  }
}

async function serverOn(dir: string): Promise<number | undefined> {
  const text = await readFile(join(dir, 'redis.pid'), 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  if (!(pid > 0)) return undefined
  // A killed server leaves its pid file, and another process may have that pid now. On Linux, the working
  // directory of the process is compared: Redis works in its data directory. Elsewhere, the pid must suffice.
  if (process.platform === 'linux') {
    const worksIn = await readlink(`/proc/${pid}/cwd`).catch(() => '')
    return worksIn === (await realpath(dir)) ? pid : undefined
  }
  try {
    process.kill(pid, 0)
    return pid
  } catch {
    return undefined
  }
}

async function answers(socket: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const connection = connect(socket)
  connection.once('connect', () => resolve(true)).once('error', () => resolve(false))
  const answered = await promise
  connection.destroy()
  return answered
}
