import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { createSessionStore } from '@onetrip/session-store'
import { type JanitorWork, keysOf } from './janitor.ts'

// The other end of `janitor.ts`: a thread, and so an event loop, of the janitor's own.

const { url, layout, limits, untilSwept, secret } = workerData as JanitorWork & { secret: string }
const keys = keysOf(layout)
const store = createSessionStore({ url, keys, tokens: { secrets: [secret] }, janitor: false })
const janitor = store.janitor({
  ...limits,
  onProgress(event) {
    if (event.type === 'step') parentPort?.postMessage({ step: event })
  },
})
try {
  await store.ready()
  if (parentPort) {
    parentPort.postMessage('ready')
    await once(parentPort, 'message')
  }
  while ((await janitor.runOnce()).sweeping && untilSwept);
} finally {
  await store.close()
}
parentPort?.close()
