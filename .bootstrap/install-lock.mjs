import {
  accessSync,
  constants,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, Problem, root } from './repository.mjs'

const STALE_AFTER_MS = 60_000
const HEARTBEAT_MS = 5_000

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

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
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
export async function withInstallLock(work) {
  try {
    mkdirSync(join(root, '.onetrip'), { recursive: true })
    accessSync(root, constants.W_OK)
  } catch (error) {
    throw new Problem(
      `Cannot install the dependencies into ${root} (${codeOf(error)}).\n` +
        'Let this user write there, or clone the repository to another place.',
    )
  }
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
