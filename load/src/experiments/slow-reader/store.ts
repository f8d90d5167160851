import { parentPort, workerData } from 'node:worker_threads'
import { createSessionStore, StoreError } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'

// A worker thread: the store reads through it as an application does, and the whole thread stops for a
// while, as it would for a long computation, while another watches the server's memory.

export interface StoreWork {
  url: string
  /** Calls in all, of two commands each. */
  calls: number
  /** Calls that wait for their answer at the same time. */
  atATime: number
  /** For how long the thread stops when a third of the calls has been made. */
  stallMs: number
}

export interface StoreReading {
  answered: number
  /** Calls that the store did not send because too many were in flight. */
  refused: number
}

async function readViews({ url, calls, atATime, stallMs }: StoreWork): Promise<StoreReading> {
  const store = createSessionStore({ url, tokens: { secrets: [newSecret()] }, janitor: false })
  try {
    await store.ready()
    const token = store.issueToken()
    for (let item = 0; item < 25; item++) {
      await store.updateToken(token, 'slow-reader', `${item}`.padEnd(128, 'x'))
    }
    const reading: StoreReading = { answered: 0, refused: 0 }
    let made = 0
    const callOn = async () => {
      while (made < calls) {
        made++
        if (made === Math.ceil(calls / 3)) setImmediate(stop, stallMs)
        try {
          await store.viewedItems(token)
          reading.answered++
        } catch (error) {
          if (!(error instanceof StoreError) || error.code !== 'ONETRIP_OVERLOADED') throw error
          reading.refused++
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(atATime, calls) }, callOn))
    return reading
  } finally {
    await store.close()
  }
}

/** Nothing else happens in this thread meanwhile. */
function stop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

parentPort?.postMessage(await readViews(workerData as StoreWork))
