import { createSessionStore } from '@onetrip/session-store'

const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
})
await store.ready()

const { token } = await store.login('ada') // after you have authenticated the user
console.log(await store.recordView(token, 'book')) // { user: 'ada', views: 1 }
console.log(await store.checkToken(token)) // { user: 'ada', lastSeenAt: 1790000000123 }
await store.logout(token)
await store.close()
