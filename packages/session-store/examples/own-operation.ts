import { createSessionStore, type Operation } from '@onetrip/session-store'

const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})
await store.ready()

const addToBasket = (user: string, item: string): Operation<number> => ({
  commands: [
    ['SADD', `basket:${user}`, item],
    ['EXPIRE', `basket:${user}`, 86_400],
    ['SCARD', `basket:${user}`],
  ],
  readOnly: false,
  read: ([, , size]) => Number(size),
})

console.log(await store.run(addToBasket('ada', 'book'))) // 1
await store.close()
