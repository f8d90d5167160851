import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import lockfile from 'proper-lockfile'
import { RedisBuildError } from './errors.ts'
import type { Job } from './job.ts'

/** A lock whose holder was killed is free again after this time, in ms. */
const STALE_AFTER_MS = 10_000
const RETRY_AFTER_MS = 250

/**
 * Runs `work` while no other process fetches, builds or cleans in the same home.
 *
 * Waits for whoever holds the lock, and says so once; with `wait: false` it refuses instead.
 *
 * @throws RedisBuildError (BUSY) when it may not wait, or when the lock was lost on the way.
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
    // It may be gone already, after having been lost.
    await release().catch(() => {})
  }
}

async function acquire(
  { home, progress, signal }: Job,
  lost: AbortController,
  wait: boolean,
): Promise<() => Promise<void>> {
  for (let told = false; ; ) {
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
      if (!told) progress.note('Another process is building here; waiting for it.')
      told = true
      await sleep(RETRY_AFTER_MS, undefined, { signal }).catch(() => {})
    }
  }
}
