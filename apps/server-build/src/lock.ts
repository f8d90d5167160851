import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import lockfile from 'proper-lockfile'
import { RedisBuildError } from './errors.ts'
import type { Job } from './job.ts'

/** A lock whose owner was killed becomes free after this time, in ms. */
const STALE_AFTER_MS = 10_000
const RETRY_AFTER_MS = 250

/**
 * Runs `work` while no other process downloads, builds or cleans in the same home. If the lock is taken, it
 * prints a message and waits; with `wait: false`, it throws.
 *
 * @throws RedisBuildError (BUSY) if the lock is taken and `wait` is false, or if the lock is lost meanwhile.
 */
export async function locked<T>(
  job: Job,
  work: (job: Job) => Promise<T>,
  { wait = true } = {},
): Promise<T> {
  await mkdir(job.home.redis, { recursive: true })
  const lost = new AbortController()
  const release = await acquire(job, lost, wait)
  try {
    return await work({ ...job, signal: AbortSignal.any([job.signal, lost.signal]) })
  } finally {
    // Fails if the lock was lost.
    await release().catch(() => {})
  }
}

async function acquire(
  { home, progress, signal }: Job,
  lost: AbortController,
  wait: boolean,
): Promise<() => Promise<void>> {
  for (let announced = false; ; ) {
    signal.throwIfAborted()
    try {
      return await lockfile.lock(home.redis, {
        lockfilePath: `${home.redis}/.lock`,
        stale: STALE_AFTER_MS,
        onCompromised: (error) =>
          lost.abort(
            new RedisBuildError('BUSY', `The lock on ${home.redis} was lost: ${error.message}`),
          ),
      })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ELOCKED')) throw error
      if (!wait) {
        throw new RedisBuildError(
          'BUSY',
          `Another process is building in ${home.redis}. Try again when it has finished.`,
        )
      }
      if (!announced) progress.note('Another process is building here; waiting for it.')
      announced = true
      await sleep(RETRY_AFTER_MS, undefined, { signal }).catch(() => {})
    }
  }
}
