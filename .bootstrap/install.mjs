// Installs the dependencies if node_modules lacks a package of package-lock.json, then checks which
// Node will run the program. The scripts of package.json run this file first, with the Node that runs
// npm, because node_modules/.bin/node may be incomplete. Plain JavaScript, for Node 20 and newer.
// With --omit=dev (npm start, load, doctor and redis), packages for tests and development are not needed.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** npm's list of the packages in node_modules. `npm ci` removes it first and writes it last. */
const installedList = join(root, 'node_modules', '.package-lock.json')

/** Prevents concurrent installations. Contains the process id of the owner. */
const lockFile = join(root, '.onetrip', 'installing.pid')

/** The owner touches the lock each second. A lock untouched for this long is stale, even if its id is in use. */
const LOCK_STALE_MS = 60_000

/** The oldest Node that may replace the pinned one. It runs TypeScript without a build. */
const OLDEST_NODE = 24

/** Settings inherited from npm that would make `npm ci` install less. */
const NARROWING_SETTINGS =
  /^npm_config_(omit|only|production|workspaces?|include_workspace_root|global|location|dry_run|package_lock_only)$/i

/** An error that is shown without its stack. */
class Problem extends Error {}

const omitsDev = process.argv.includes('--omit=dev')

/**
 * @typedef {{ version?: string, dev?: boolean, optional?: boolean, bin?: { node?: string }, os?: string, cpu?: string }} Package
 * @param {string} file
 * @returns {Record<string, Package>}
 */
const packagesOf = (file) => JSON.parse(fs.readFileSync(file, 'utf8')).packages

/**
 * Whether everything is installed, except packages for development if `withoutDev`. Of the optional packages, only
 * this platform's Node is required.
 */
function isInstalled(withoutDev = omitsDev) {
  /** @type {ReturnType<typeof packagesOf>} */
  let installed
  try {
    installed = packagesOf(installedList)
  } catch {
    return false // The list is missing, or npm was killed while it wrote the list.
  }
  return Object.entries(packagesOf(join(root, 'package-lock.json'))).every(([path, wanted]) => {
    const { version, dev, optional, bin, os, cpu } = wanted
    const isOurNode = bin?.node !== undefined && os === process.platform && cpu === process.arch
    if (!path.includes('node_modules/') || (optional && !isOurNode)) return true
    if (dev && withoutDev) return true
    return installed[path]?.version === version && fs.existsSync(join(root, path))
  })
}

/** The content that this process wrote into the lock; empty if it does not own the lock. */
let owned = ''

/** Waits until no other process installs. The lock is released when this process exits. */
async function takeLock() {
  fs.mkdirSync(dirname(lockFile), { recursive: true })
  for (let announced = false; owned === ''; ) {
    try {
      fs.writeFileSync(lockFile, `${process.pid}`, { flag: 'wx' })
      owned = `${process.pid}`
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      if (removeAbandonedLock()) continue
      if (!announced) console.error(`Waiting for another installation to finish (${lockFile})`)
      announced = true
      await sleep(200)
    }
  }
}

/** Returns false if another process owns the lock. */
function removeAbandonedLock() {
  try {
    const owner = fs.readFileSync(lockFile, 'utf8')
    const isStale = Date.now() - fs.statSync(lockFile).mtimeMs > LOCK_STALE_MS
    // An empty lock: its owner is about to write the process id.
    if (!isStale && (owner === '' || isAlive(Number(owner)))) return false
    const aside = `${lockFile}.${process.pid}`
    fs.renameSync(lockFile, aside)
    // If another process was faster, this is its new lock: restore it.
    if (fs.readFileSync(aside, 'utf8') !== owner) fs.linkSync(aside, lockFile)
    fs.rmSync(aside)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error // Another process removed the lock.
  }
  return true
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** @type {import('node:child_process').ChildProcess | undefined} */
let npm

async function install() {
  console.error('Installing dependencies (once)…')
  // After --omit=dev, the rest is added. `npm ci` would remove the packages of a running `npm start` first.
  const npmCommand = isInstalled(true) ? ['install', '--no-save'] : ['ci']
  fs.rmSync(installedList, { force: true })
  // --include and --bin-links override NODE_ENV=production and the user's .npmrc.
  const dev = omitsDev ? '--omit=dev' : '--include=dev'
  const args = '--include=optional --include=peer --bin-links --loglevel=error'
  const env = Object.entries(process.env).filter(([name]) => !NARROWING_SETTINGS.test(name))
  const cli = process.env.npm_execpath ?? ''
  const command = basename(cli) === 'npm-cli.js' ? [process.execPath, cli] : ['npm']
  npm = spawn(command[0] ?? '', [...command.slice(1), ...npmCommand, dev, ...args.split(' ')], {
    cwd: root,
    env: Object.fromEntries(env),
    stdio: 'inherit',
  })
  if (npm.pid !== undefined) {
    // npm continues if this process is killed, so npm must be the owner.
    owned = `${npm.pid}`
    fs.writeFileSync(lockFile, owned)
  }
  const [code, signal] = await once(npm, 'exit')
  if (code === 0) return
  throw new Problem(
    `Could not install the dependencies: npm ${npmCommand[0]} ended with ${signal ?? code}; see its output above.\n` +
      'npm needs its registry (`npm config get registry`). Run the same command again to retry.',
  )
}

/** Checks that `node` in the scripts (the first in PATH) is the pinned version or new enough. */
function checkNode() {
  const pinned = fs.readFileSync(join(root, '.node-version'), 'utf8').trim()
  const linked = join(root, 'node_modules', '.bin', 'node')
  let version = versionOf(linked)
  if (version === undefined) {
    // A pinned Node that cannot run here (it needs glibc) must not hide the system's Node.
    fs.rmSync(linked, { force: true })
    version = versionOf('node') ?? '(none in PATH)'
  }
  if (version === pinned) return
  const why = `node_modules has no Node ${pinned} that runs on ${process.platform}-${process.arch}`
  if (!(Number.parseInt(version, 10) >= OLDEST_NODE)) {
    throw new Problem(
      `Node ${version} is too old, and ${why}.\n` +
        `Install Node ${OLDEST_NODE} or newer (tested: ${pinned}), and run the same command again.`,
    )
  }
  console.error(`WARNING: ${why}; using Node ${version} instead, which is not tested`)
}

/** @param {string} node */
function versionOf(node) {
  const { status, stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().slice(1) : undefined
}

/** @param {unknown} error */
const codeOf = (error) => (error instanceof Error && 'code' in error ? error.code : undefined)

/**
 * Ends npm and this process at once, without cleanup: the next installation starts from scratch.
 * @param {number} exitCode
 */
function stop(exitCode) {
  if (npm?.kill('SIGKILL')) npm.once('exit', () => process.exit(exitCode))
  else process.exit(exitCode)
}

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => stop(128 + constants.signals[signal]))
}

// npm sends SIGTERM only to the shell of the script, which exits without forwarding the signal.
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) stop(1)
  else if (owned !== '') fs.utimes(lockFile, new Date(), new Date(), () => {})
}, 1_000).unref()

process.on('exit', () => {
  const isOwner =
    owned !== '' && fs.existsSync(lockFile) && fs.readFileSync(lockFile, 'utf8') === owned
  if (isOwner) fs.rmSync(lockFile)
})

try {
  if (!isInstalled()) {
    await takeLock()
    if (!isInstalled()) await install()
  }
  checkNode()
} catch (error) {
  const code = codeOf(error)
  if (!(error instanceof Problem) && code === undefined) throw error
  const isDenied = ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'ENOTDIR'].includes(String(code))
  const hint = isDenied
    ? '\nGive this user write permission and disk space there, or clone the repository to another place.'
    : ''
  const cannot = `Cannot install the dependencies into ${root}: ${error}${hint}`
  console.error(error instanceof Problem ? error.message : cannot)
  process.exitCode = 1
}
