import { readFileSync } from 'node:fs'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { readyStore } from './fixture.ts'

const server = redisOfThisFile()

const reference = readFileSync(new URL('../REFERENCE.md', import.meta.url), 'utf8')
const sample = /^```ts\n(const label = [^`]*)```$/m.exec(reference)?.[1]
const logIn = new Function('request', 'reply', 'user', `return (async () => {${sample}})()`)

test.for([
  ['Firefox/145 (X11)', 'Firefox/145 (X11)'],
  ['Wëb\t1 😀', 'Wb1 '],
  ['x'.repeat(4_000), 'x'.repeat(200)],
  ['', undefined],
  [undefined, undefined],
] as const)(
  'the sample for labels in the reference accepts the User-Agent %#',
  async ([agent, label]) => {
    const store = await readyStore({ redis: `unix://${server.socket}` })
    // As Node reads a header.
    const headers = { 'user-agent': agent && Buffer.from(agent).toString('latin1') }
    let token = ''
    const reply = {
      async login(...login: Parameters<typeof store.login>) {
        token = (await store.login(...login)).token
      },
    }
    await logIn({ headers }, reply, 'ada')
    const { sessions } = await store.userSessions(token)
    expect(sessions.map((session) => session.label)).toEqual([label])
  },
)
