import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '../application.ts'
import { type Case, isMissing, times } from '../case.ts'

/** How long an answer may take while Redis does not answer: longer is a hanging page. */
const PATIENCE_MS = 6_000

/** Waits until the application answers with 200 or 401 again, at most 10 s. Null if it does not. */
async function recovered(browser: Browser): Promise<number | null> {
  for (const end = Date.now() + 10_000; Date.now() < end; await delay(100)) {
    const { status } = await browser.send('/me', undefined, undefined, 1_000)
    if (status === 200 || status === 401) return status
  }
  return null
}

/** Cuts the connection at the write of a change. The answer must say what happened: 200 only if it is kept. */
const cutAtChange =
  (phase: 'before' | 'after'): Case['run'] =>
  ({ loggedIn, cutNext }) =>
    times(10, async (trial) => {
      const browser = await loggedIn(`user${trial}`)
      if (isMissing(await browser.send('/set', { field: 'n', value: 0 }))) return null
      const cut = cutNext(phase)
      const { status } = await browser.send(
        '/set',
        { field: 'n', value: 1 },
        undefined,
        PATIENCE_MS,
      )
      await cut
      if (status === 0 || (await recovered(browser)) !== 200) return false
      const value = await browser.field('n')
      return status === 200 ? value === 1 : status >= 500
    })

const cutAtLogout =
  (phase: 'before' | 'after'): Case['run'] =>
  ({ loggedIn, cutNext }) =>
    times(10, async (trial) => {
      const browser = await loggedIn(`user${trial}`)
      const stolen = browser.copy()
      const cut = cutNext(phase)
      const { status } = await browser.send('/logout', {}, undefined, PATIENCE_MS)
      await cut
      const now = await recovered(stolen)
      return status === 200 ? now === 401 : status >= 500 && now !== null
    })

/** While Redis does not answer: an error in time, neither 200 nor 401 (which would log the user out). */
const whileRedis =
  (
    fault: (redis: Parameters<Case['run']>[0]['redis']) => Promise<() => Promise<unknown>>,
  ): Case['run'] =>
  async ({ loggedIn, redis }) => {
    const browser = await loggedIn()
    const repair = await fault(redis)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        browser.copy().send('/me', undefined, undefined, PATIENCE_MS),
      ),
    )
    await repair()
    return { held: answers.filter(({ status }) => status >= 500).length, of: 5 }
  }

export const faultCases: Case[] = [
  {
    name: 'Connection cut before Redis gets a change: the answer is true',
    run: cutAtChange('before'),
  },
  {
    name: 'Connection cut after Redis made a change: the answer is true',
    run: cutAtChange('after'),
  },
  {
    name: 'Connection cut before Redis gets a logout: the answer is true',
    run: cutAtLogout('before'),
  },
  {
    name: 'Connection cut after Redis made a logout: the answer is true',
    run: cutAtLogout('after'),
  },
  {
    name: 'Redis is killed: an error within 6 s, nobody is logged out',
    run: whileRedis(async (redis) => {
      redis.program.signal('SIGKILL')
      await redis.program.exited
      return () => redis.restart()
    }),
  },
  {
    name: 'Redis hangs: an error within 6 s, nobody is logged out',
    run: whileRedis(async (redis) => {
      redis.program.signal('SIGSTOP')
      return async () => redis.program.signal('SIGCONT')
    }),
  },
  {
    name: 'After a restart of Redis, sessions work again without a restart of the application',
    async run({ loggedIn, redis }) {
      const browser = await loggedIn()
      redis.program.signal('SIGKILL')
      await redis.restart()
      return { held: (await recovered(browser)) === 200 ? 1 : 0, of: 1 }
    },
  },
]
