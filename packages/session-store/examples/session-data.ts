import { createSessionStore, StoreError } from '@onetrip/session-store'

const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})
await store.ready()

// A visitor fills a cart. Parallel requests that change different fields lose nothing.
const guest = await store.loginGuest()
await Promise.all([
  store.patch(guest.token, { cart: ['book'], banner: 'seen' }),
  store.patch(guest.token, { theme: 'dark' }),
])

// The visitor logs in: a new token, the same cart.
const { token } = await store.login('ada', { from: guest.token })
await store.patch(token, { banner: undefined }) // removes the field
const { user, data } = await store.checkToken(token, { data: true }) // one round trip
console.log(user, data) // ada { fields: { cart: [ 'book' ], theme: 'dark' }, version: 3 }

// Change a field only if nothing else has changed the data meanwhile.
await store.patch(token, { cart: ['book', 'pen'] }, { ifVersion: data.version })
try {
  await store.patch(token, { cart: [] }, { ifVersion: data.version })
} catch (error) {
  if (!(error instanceof StoreError && error.code === 'ONETRIP_CONFLICT')) throw error
  console.log((await store.data(token)).fields.cart) // [ 'book', 'pen' ]
}

console.log((await store.exportUser('ada')).sessions.length) // 1
await store.eraseUser('ada')
await store.close()
