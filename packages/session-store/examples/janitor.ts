import { setTimeout } from 'node:timers/promises'
import { SessionStore } from '@onetrip/session-store'

const store = new SessionStore({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
  janitor: 'elsewhere',
})
await store.ready()

// One: it holds the position of the sweep. sweepKeys: no other program uses this database.
const janitor = store.janitor({ maxSessions: 1_000_000, sweepKeys: true })
let run = await janitor.runOnce()
while (run.sweeping) {
  if (!run.worked) await setTimeout(1_000) // another process holds the lock
  run = await janitor.runOnce()
}
await store.close()
