import { Redis } from 'ioredis'
import { type Case, countLoggedIn, during, isMissing, logIn, SECRETS, times } from '../case.ts'

export const loginCases: Case[] = [
  {
    name: 'A login gives a new cookie; the one from before it is of no use (fixation)',
    run: ({ browser }) =>
      times(10, async (trial) => {
        const victim = browser()
        const guest = await victim.send('/guest', { field: 'cart', value: ['book'] })
        if (isMissing(guest)) await victim.send('/me')
        const attacker = victim.copy()
        await logIn(victim, `user${trial}`)
        return (await victim.user()) !== null && (await attacker.user()) === null
      }),
  },
  {
    name: 'Two logins at once in one browser: the cookie that is left works',
    run: ({ browser }) =>
      times(20, async (trial) => {
        const one = browser()
        await one.send('/guest', { field: 'cart', value: [] })
        const logins = await Promise.all(
          ['ada', 'bob'].map((user) => one.send('/login', { user: `${user}${trial}` })),
        )
        return logins.some(({ status }) => status === 200) && (await one.user()) !== null
      }),
  },
  {
    name: 'A new id keeps the session, and ends the old cookie',
    run: ({ loggedIn }) =>
      times(10, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const old = browser.copy()
        if (isMissing(await browser.send('/regenerate'))) return null
        return (await browser.user()) === `user${trial}` && (await old.user()) === null
      }),
  },
  {
    name: 'The old id stays ended, though a request in flight then saves to it',
    run: ({ loggedIn }) =>
      times(20, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const old = browser.copy()
        const body = { field: 'theme', value: 'dark' }
        const slow = (hold: string) => old.copy().send('/set', body, hold)
        if (!(await during(slow, () => browser.send('/regenerate')))) return null
        return (await old.user()) === null && (await browser.user()) !== null
      }),
  },
  {
    name: 'A cookie that was signed with another secret is refused',
    async run({ another, loggedIn }) {
      const elsewhere = await another(['another-secret-another-secret-another-secret'])
      return await times(5, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        return (await browser.copy(elsewhere).user()) === null
      })
    },
  },
  {
    name: 'A cookie with one changed character is refused, and nothing fails',
    run: ({ loggedIn }) =>
      times(20, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        for (const [name, value] of browser.cookies) {
          const text = decodeURIComponent(value)
          const at = Math.floor(((trial + 0.5) / 20) * text.length)
          // Not B: as the last character of base64, it can mean the same bytes as A.
          const other = text[at] === 'A' ? 'Q' : 'A'
          browser.cookies.set(
            name,
            encodeURIComponent(text.slice(0, at) + other + text.slice(at + 1)),
          )
        }
        return (await browser.send('/me')).status === 401
      }),
  },
  {
    name: 'After a change of secrets, cookies of the old one work while it is configured',
    async run({ another, loggedIn }) {
      const rolled = await another(['a-new-secret-a-new-secret-a-new-secret-a', ...SECRETS])
      return await times(5, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        return (await browser.copy(rolled).user()) === `user${trial}`
      })
    },
  },
  {
    name: 'Who reads Redis cannot make a cookie from it',
    run: async ({ loggedIn, redis, browser }) => {
      const user = await loggedIn()
      const [[name = '', value = ''] = []] = user.cookies
      const text = decodeURIComponent(value)
      const dump = await redisTexts(redis)
      // The parts of the cookie that Redis knows, without the signature.
      const known = text.split(/[.:]/).filter((part) => part.length > 12 && dump.includes(part))
      const thief = browser()
      let held = 0
      const tries = [...known, ...known.map((part) => `s:${part}`)]
      for (const attempt of tries) {
        thief.cookies.set(name, encodeURIComponent(attempt))
        if ((await thief.user().catch(() => null)) === null) held++
      }
      const isWhole = dump.includes(text)
      return isWhole ? { held: 0, of: 1 } : { held: held === tries.length ? 1 : 0, of: 1 }
    },
  },
  {
    name: '60 logins at once: each works',
    async run({ browser }) {
      const browsers = Array.from({ length: 60 }, browser)
      await logIn(browser(), 'ada')
      await Promise.all(browsers.map((one) => one.send('/login', { user: 'ada' })))
      return { held: await countLoggedIn(browsers), of: 60 }
    },
  },
]

/** All names and values in Redis as one text. */
async function redisTexts({ socket }: { socket: string }): Promise<string> {
  const client = new Redis(socket)
  const texts: string[] = []
  for (const key of await client.keys('*')) {
    const type = await client.type(key)
    const read = { string: ['get', key], hash: ['hgetall', key], zset: ['zrange', key, '0', '-1'] }[
      type
    ]
    texts.push(key, JSON.stringify(read ? await client.call(...(read as [string, string])) : ''))
  }
  client.disconnect()
  return texts.join('\n')
}
