import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { fastifySessionStore } from '../src/adapters/fastify-session.ts'
import {
  createSessionStore,
  type JanitorOptions,
  type SessionStore,
  type SessionStoreOptions,
  safeRedisOptions,
} from '../src/core/index.ts'
import { sessionCookie } from '../src/web/cookie.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

function storeForThisTest(options: object): SessionStore {
  const given: SessionStoreOptions = {
    url: `unix://${server.socket}`,
    tokens,
    janitor: 'elsewhere',
  }
  const store = createSessionStore({ ...given, ...options })
  onTestFinished(() => store.close())
  return store
}

test.each([
  [{ idleSecond: 60 }, 'a session store has no option idleSecond: its options are'],
  [{ ttl: 60 }, 'a session store has no option ttl: its options are url, tls, client,'],
  [{ toString: 1 }, 'a session store has no option toString'],
  [{ tokens: { ...tokens, secret: 'x' } }, 'tokens has no option secret: its options are secrets,'],
  [{ tokens: { ...tokens, lifetime: 1 } }, 'tokens has no option lifetime'],
  [{ dataLimits: { fieldsBytes: 1 } }, 'dataLimits has no option fieldsBytes'],
  [{ janitor: { maxSession: 5 } }, 'a janitor has no option maxSession:'],
])('%j stops the start', (options, message) => {
  expect(() => storeForThisTest(options)).toThrow(TypeError)
  expect(() => storeForThisTest(options)).toThrow(message)
})

test('an unknown option that is undefined is ignored', async () => {
  const store = storeForThisTest({ idleSecond: undefined, poolSize: undefined })
  await store.ready()
})

test('a janitor and a store of a framework check theirs, too', () => {
  const store = storeForThisTest({})
  expect(() => store.janitor({ intervallSeconds: 5 } as JanitorOptions)).toThrow(
    'a janitor has no option intervallSeconds',
  )
  expect(() => fastifySessionStore(store, { migrateForm: {} } as object)).toThrow(
    'the session store of a framework has no option migrateForm: its options are migrateFrom',
  )
})

test.each([
  [{ maxAge: 60 }, 'cookie has no option maxAge: the cookie lives as long as the token'],
  [{ expires: new Date() }, 'cookie has no option expires: the cookie lives as long as the token'],
  [{ httpOnly: false }, 'cookie has no option httpOnly: the cookie is always HttpOnly'],
  [{ samesite: 'lax' }, 'cookie has no option samesite: its options are'],
])('a cookie with %j is refused', (options, message) => {
  expect(() => sessionCookie(options as object)).toThrow(TypeError)
  expect(() => sessionCookie(options as object)).toThrow(message)
})

test('poolSize beside a client of your own is refused', () => {
  const client = new Redis(server.socket, { ...safeRedisOptions, lazyConnect: true })
  onTestFinished(() => client.disconnect())
  const options = { url: undefined, client, poolSize: 4 }
  expect(() => storeForThisTest(options)).toThrow('poolSize needs a url')
})
