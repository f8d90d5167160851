import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import {
  documentKeys,
  type JanitorOptions,
  type Keys,
  partitionedKeys,
  type RetentionStep,
  type RetentionWork,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'

export const layouts = ['documents', 'partitioned'] as const
export type Layout = (typeof layouts)[number]

/** The keys of a layout. */
export function keysOf(layout: Layout): Keys {
  return layout === 'documents' ? documentKeys : partitionedKeys()
}

/** What a janitor is to do; plain data. */
export interface JanitorWork {
  url: string
  layout: Layout
  limits: JanitorOptions
  /** Run it again until it has swept everything. */
  untilSwept: boolean
}

interface JanitorResult extends RetentionWork {
  steps: number
}

/** A janitor that is connected and waits for its turn. */
export interface WaitingJanitor {
  /** @throws what the janitor throws; the reason of the signal. */
  run(onStep: (soFar: JanitorResult) => void): Promise<JanitorResult>
  /** Ends its thread. */
  close(): Promise<void>
}

type Message = 'ready' | { step: RetentionStep }

/**
 * Prepares a run of the store's janitor in a thread of its own, so that it shares Redis with us but no
 * event loop.
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
  failed.promise.catch(() => {}) // told by whichever promise is waited for
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
      const total = { evicted: 0, itemsDropped: 0, itemsHalved: 0, swept: 0, steps: 0 }
      worker.on('message', (message: Message) => {
        if (message === 'ready') return
        for (const kind of kinds) total[kind] += message.step[kind]
        total.steps++
        onStep(total)
      })
      worker.postMessage('go')
      await Promise.race([finished, failed.promise])
      return total
    },
    close,
  }
}

const kinds = ['evicted', 'itemsDropped', 'itemsHalved', 'swept'] as const
