import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import lockfile from 'proper-lockfile'
import { RedisBuildError } from './errors.ts'
import type { Job } from './job.ts'

/** A lock whose owner was killed becomes free after this time, in ms. */
const STALE_AFTER_MS = 10_000
const RETRY_AFTER_MS = 250

/**
 * Runs `work` while no other process downloads or builds in the same home; waits for the lock if it is taken.
 * The temporary folder is empty at the start and is removed at the end.
 *
 * @throws RedisBuildError (LOCK_LOST) if another process takes the lock meanwhile; (HOME_NOT_WRITABLE).
 */
export async function locked<T>(job: Job, work: (job: Job) => Promise<T>): Promise<T> {
  const { redis, temporary } = job.home
  await createHome(redis)
  const lost = new AbortController()
  const release = await acquire(job, lost)
  const removeTemporary = () => rm(temporary, { recursive: true, force: true })
  try {
    await removeTemporary() // of a killed process
    return await work({ ...job, signal: AbortSignal.any([job.signal, lost.signal]) })
  } finally {
    if (!lost.signal.aborted) await removeTemporary()
    await release().catch(() => {}) // fails if the lock was lost
  }
}

/** Creates a folder, with those that it is in. Not `mkdir` with `recursive`, which never ends below /proc. */
async function createHome(path: string): Promise<void> {
  const missing: string[] = []
  for (let folder = path; !existsSync(folder); folder = dirname(folder)) missing.unshift(folder)
  try {
    for (const folder of missing) await mkdir(folder)
  } catch (error) {
    if (existsSync(path)) return // another process was faster
    const message = `Cannot create ${path}: ${(error as Error).message}. Set ONETRIP_HOME to a writable folder.`
    throw new RedisBuildError('HOME_NOT_WRITABLE', message, { cause: error })
  }
}

async function acquire(
  { home, progress, signal }: Job,
  lost: AbortController,
): Promise<() => Promise<void>> {
  for (let announced = false; ; announced = true) {
    signal.throwIfAborted()
    try {
      return await lockfile.lock(home.redis, {
        lockfilePath: `${home.redis}/.lock`,
        stale: STALE_AFTER_MS,
        onCompromised: ({ message }) =>
          lost.abort(
            new RedisBuildError('LOCK_LOST', `The lock on ${home.redis} was lost: ${message}`),
          ),
      })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ELOCKED')) throw error
      if (!announced) progress.note('Another process is building here; waiting for it.')
      await sleep(RETRY_AFTER_MS, undefined, { signal }).catch(() => {})
    }
  }
}
