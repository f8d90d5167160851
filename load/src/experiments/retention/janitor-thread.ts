import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import {
  type JanitorOptions,
  type RetentionEvent,
  retentionChannel,
  SessionStore,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'

// Runs the store's janitor in its own thread with its own event loop. It posts a message when it is connected, waits
// for a message, runs, and posts the number of removed sessions.

export interface JanitorWork {
  url: string
  limits: JanitorOptions
  /** Whether to run until the sweep is complete. */
  untilSwept: boolean
}

const { url, limits, untilSwept } = workerData as JanitorWork
const store = new SessionStore({
  redis: url,
  tokens: { secrets: [newSecret()] },
  janitor: 'elsewhere',
})
let removed = 0
const janitor = store.janitor(limits)
retentionChannel.subscribe((message) => {
  const event = message as RetentionEvent
  if (event.type === 'step') removed += event.evicted + event.swept
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
