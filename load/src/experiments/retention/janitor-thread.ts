import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { createSessionStore, type JanitorOptions } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'

// The store's janitor in a thread, and so an event loop, of its own. It posts a message when it is connected,
// waits for one, and posts the number of sessions that it removed.

export interface JanitorWork {
  url: string
  limits: JanitorOptions
  /** Whether it runs again until it has swept everything. */
  untilSwept: boolean
}

const { url, limits, untilSwept } = workerData as JanitorWork
const store = createSessionStore({ url, tokens: { secrets: [newSecret()] }, janitor: false })
let removed = 0
const janitor = store.janitor({
  ...limits,
  onProgress(event) {
    if (event.type === 'step') removed += event.evicted + event.swept
  },
})
try {
  await store.ready()
  parentPort?.postMessage('ready')
  if (parentPort) await once(parentPort, 'message')
  while ((await janitor.runOnce()).sweeping && untilSwept);
} finally {
  await store.close()
}
parentPort?.postMessage(removed)
parentPort?.close()
