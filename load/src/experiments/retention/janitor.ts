import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import {
  documentKeys,
  type JanitorOptions,
  type Keys,
  partitionedKeys,
  type RetentionStep,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'

export const layouts = ['documents', 'partitioned'] as const
export type Layout = (typeof layouts)[number]

/** The keys of a layout. */
export function keysOf(layout: Layout): Keys {
  return layout === 'documents' ? documentKeys : partitionedKeys()
}

/** What a janitor has to do; plain data. */
export interface JanitorWork {
  url: string
  layout: Layout
  limits: JanitorOptions
  /** Whether it runs again until it has swept everything. */
  untilSwept: boolean
}

/** A janitor that is connected and ready to run. */
interface WaitingJanitor {
  /**
   * Runs it; returns how many sessions it evicted or swept.
   *
   * @throws what the janitor throws; the reason of the signal.
   */
  run(onStep: (soFar: number) => void): Promise<number>
  /** Ends its thread. */
  close(): Promise<void>
}

type Message = 'ready' | { step: RetentionStep }

/**
 * Prepares a run of the store's janitor in a thread of its own: it shares Redis with the victim, but not
 * the event loop.
 *
 * @throws what the janitor throws; the reason of `signal`.
 */
export async function prepareJanitor(
  work: JanitorWork,
  signal: AbortSignal,
): Promise<WaitingJanitor> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./janitor-thread.ts', import.meta.url), {
    workerData: { ...work, secret: newSecret() },
  })
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {}) // reported by the promise that is awaited
  worker.once('error', failed.reject)
  const onAbort = () => failed.reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  const close = async () => {
    signal.removeEventListener('abort', onAbort)
    await worker.terminate()
  }
  try {
    await Promise.race([once(worker, 'message'), failed.promise])
  } catch (error) {
    await close()
    throw error
  }
  return {
    async run(onStep) {
      const finished = once(worker, 'exit')
      let removed = 0
      worker.on('message', (message: Message) => {
        if (message === 'ready') return
        removed += message.step.evicted + message.step.swept
        onStep(removed)
      })
      worker.postMessage('go')
      await Promise.race([finished, failed.promise])
      return removed
    },
    close,
  }
}
