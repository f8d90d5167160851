/** A janitor process that is killed while it works: `node dying-janitor.ts <socket> <lockSeconds>`. */
import { SessionStore } from '../src/index.ts'

const [socket, lockSeconds] = process.argv.slice(2)
const secrets = ['a-secret-for-tests-a-secret-for-tests']
const store = new SessionStore({
  redis: `unix://${socket}`,
  tokens: { secrets },
  janitor: 'elsewhere',
})
await store.ready()
const janitor = store.janitor({
  maxSessions: 0,
  batchSize: 1,
  lockSeconds: Number(lockSeconds),
  onProgress: () => process.kill(process.pid, 'SIGKILL'),
})
await janitor.runOnce()
