import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import type { CookieOptions } from '../../src/web/cookie.ts'
import { gone, readyStore } from '../fixture.ts'
import { cookieJar } from './cookie-jar.ts'
import { appForThisTest, frameworks } from './framework-apps.ts'

const server = redisOfThisFile()
const HOST = 'www.shop.example'
const PAGE = `https://${HOST}/shop/page`

/** Places of a cookie that the browser sends to `PAGE`. */
const places: Pick<CookieOptions, 'domain' | 'path'>[] = [
  {},
  { path: '/shop' },
  { domain: 'shop.example' },
  { domain: 'shop.example', path: '/shop' },
]

/** Each change of the place of the cookie `sid`, in a browser and in a client that follows RFC 6265. */
const changes = places.flatMap((before) =>
  places
    .filter((after) => after !== before)
    .flatMap((after) => [true, false].map((hostOnlyKey) => ({ before, after, hostOnlyKey }))),
)

describe.each(Object.entries(frameworks))('%s', (_, start) => {
  const storeForThisTest = () =>
    readyStore({ redis: `unix://${server.socket}`, deadlineMs: 30_000 })

  type Change = Partial<(typeof changes)[number]> & { name?: string }

  /** A browser with the cookies of two sessions: one from before the change, one from after it. */
  async function afterChange(change: Change = {}) {
    const { before = { path: '/shop' }, after = {}, name = 'sid', hostOnlyKey = true } = change
    const store = await storeForThisTest()
    const old = await appForThisTest(start, { store, cookie: { ...before, name } })
    const cookie = { ...after, name, previous: [before] }
    const app = await appForThisTest(start, { store, cookie })
    const jar = cookieJar({ hostOnlyKey })
    const tokens: string[] = []
    for (const { send } of [old, app]) {
      const { headers } = await send('POST', '/login/ada')
      // Only the new cookie: a login removes the others, which these tests need.
      const cookie = headers.getSetCookie().at(-1) ?? ''
      tokens.push(cookie.split(/[=;]/)[1] ?? '')
      jar.store([cookie], HOST)
    }
    const browse = async (method: string, path: string, more = {}) => {
      const cookie = jar.headerFor(PAGE)
      const answer = await app.send(method, path, { ...(cookie && { cookie }), ...more })
      jar.store(answer.headers.getSetCookie(), HOST)
      return answer
    }
    return { jar, tokens, browse, app, store }
  }

  test('after each change, the 400 removes both cookies', async () => {
    for (const change of changes) {
      const { browse, jar } = await afterChange(change)
      const several = jar.headerFor(PAGE).split('; ').length === 2
      const first = await browse('GET', '/me')
      if (several) {
        expect(first).toMatchObject({ status: 400, body: { code: 'ONETRIP_SEVERAL_COOKIES' } })
        expect(jar.headerFor(PAGE)).toBe('')
        expect((await browse('GET', '/me')).body).toMatchObject({ code: 'ONETRIP_LOGIN_REQUIRED' })
      } else {
        // RFC 6265 takes the cookie of this host and that of its domain for one.
        expect([change.hostOnlyKey, first.status]).toEqual([false, 200])
      }
      await browse('POST', '/login/ada')
      expect((await browse('GET', '/me')).body).toMatchObject({ user: 'ada' })
    }
  })

  test.each([
    ['/login/eve', 'eve'],
    ['/guest', null],
    ['/logout', undefined],
  ])(
    'after each change, POST %s leaves one cookie or none, and no old session',
    async (path, user) => {
      for (const change of changes) {
        const { browse, jar, tokens, store } = await afterChange(change)
        const sent = tokens.filter((token) => jar.headerFor(PAGE).includes(token))
        expect((await browse('POST', path)).status).toBe(200)
        expect(jar.headerFor(PAGE)).toMatch(user === undefined ? /^$/ : /^sid=[^;]+$/)
        expect((await browse('GET', '/me')).body.user).toBe(user)
        for (const token of sent) await expect(store.checkToken(token)).rejects.toMatchObject(gone)
      }
    },
  )

  test.each([
    ['is sent to the login', PAGE],
    ['is not sent to the login', `https://${HOST}/login`],
  ])('a cookie of the old place that %s does not stay beside the new one', async (_, url) => {
    const { browse, jar, app } = await afterChange()
    await browse('POST', '/logout')
    const { token } = await app.store.login('ada')
    jar.store([`sid=${token}; Path=/shop`], HOST)
    await browse('POST', '/login/ada', { cookie: jar.headerFor(url) })
    expect(jar.headerFor(PAGE)).toMatch(/^sid=[^;]+$/)
    expect((await browse('GET', '/me')).status).toBe(200)
  })

  test('the 400 keeps the cookies of the application', async () => {
    const { browse } = await afterChange()
    const { status, headers } = await browse('GET', '/themed')
    expect(status).toBe(400)
    const names = headers.getSetCookie().map((cookie) => cookie.split('=')[0])
    expect(names).toEqual(['theme', 'sid', 'sid'])
  })

  test('a request from another site removes no cookie and ends no session', async () => {
    const { browse, tokens, store } = await afterChange()
    for (const path of ['/views/book', '/login/eve', '/guest', '/logout']) {
      const { status, headers } = await browse('POST', path, { 'sec-fetch-site': 'cross-site' })
      expect([status, headers.getSetCookie()], path).toEqual([403, []])
    }
    for (const token of tokens) await store.checkToken(token)
  })

  test('a login with two cookies takes over no guest session', async () => {
    const { store, app } = await afterChange()
    const guests = [await store.loginGuest(), await store.loginGuest()]
    for (const { token } of guests) await store.patch(token, { theme: 'planted' })
    const cookie = guests.map(({ token }) => `sid=${token}`).join('; ')
    const { token } = await app.login('/login/ada', { cookie })
    expect(await store.data(token)).toEqual({ fields: {}, version: 0 })
    for (const { token } of guests) {
      await expect(store.data(token)).rejects.toMatchObject(gone)
    }
  })
})
