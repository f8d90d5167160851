import { Worker } from 'node:worker_threads'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import type { FromPacer, Paced, PaceOptions, PaceProgress } from './pacer.ts'

interface PacedRun extends PaceOptions {
  /** Whether the user said that the API's host is theirs, if it is not this machine. */
  owned: boolean
  onProgress?: (progress: PaceProgress) => void
}

/** A thread that sends requests when they are due. */
export interface PacedGenerator {
  /**
   * Runs a schedule; one at a time.
   *
   * @throws Problem when the API takes no connections; the reason of the generator's signal.
   */
  run(options: PacedRun): Promise<Paced>
  /** Ends the thread, and with it a run. */
  close(): Promise<void>
}

/** @param signal ends a run at once; the generator cannot be used afterwards. */
export function startGenerator(signal: AbortSignal): PacedGenerator {
  const worker = new Worker(new URL('./pacer.ts', import.meta.url))
  let finish = Promise.withResolvers<Paced>()
  finish.promise.catch(() => {}) // ended before the first run
  let current: PacedRun | undefined
  worker.on('message', ({ progress, paced, error }: FromPacer) => {
    if (progress) current?.onProgress?.(progress)
    if (paced) finish.resolve(paced)
    if (error)
      finish.reject(new Problem(`The API at ${current?.url} takes no connections: ${error}`))
  })
  worker.on('error', (error) => finish.reject(error))
  const onAbort = () => {
    finish.reject(signal.reason)
    void worker.terminate()
  }
  signal.addEventListener('abort', onAbort)
  return {
    async run(options) {
      signal.throwIfAborted()
      const { url, owned, calls, schedule } = options
      requireOwnHost(url, owned)
      current = options
      finish = Promise.withResolvers()
      worker.postMessage({ url, calls, schedule } satisfies PaceOptions)
      return await finish.promise
    },
    async close() {
      signal.removeEventListener('abort', onAbort)
      await worker.terminate()
    },
  }
}
