import { createSessionStore, safeRedisOptions } from '@onetrip/session-store'
import { Redis } from 'ioredis'

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', safeRedisOptions)
const tokens = { secrets: [process.env.SESSION_SECRET ?? ''] }
const acme = createSessionStore({ client: redis, prefix: 'acme:', tokens })
const umbra = createSessionStore({ client: redis, prefix: 'umbra:', tokens })
await Promise.all([acme.ready(), umbra.ready()])

const { token } = await acme.login('ada')
console.log(await acme.recordView(token, 'book')) // { user: 'ada', views: 1 }
console.log(await umbra.checkToken(token).catch(({ code }) => code)) // ONETRIP_UNKNOWN_SESSION

await Promise.all([acme.close(), umbra.close()])
redis.disconnect()
