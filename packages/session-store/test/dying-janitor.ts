/** A janitor process that is killed while it works: `node dying-janitor.ts <socket>`. */
import { retentionChannel, SessionStore } from '../src/index.ts'

const [socket] = process.argv.slice(2)
const secrets = ['a-secret-for-tests-a-secret-for-tests']
const store = new SessionStore({
  redis: `unix://${socket}`,
  tokens: { secrets },
  janitor: 'elsewhere',
})
await store.ready()
retentionChannel.subscribe(() => process.kill(process.pid, 'SIGKILL'))
await store.janitor({ maxSessions: 0, batchSize: 1 }).runOnce()
