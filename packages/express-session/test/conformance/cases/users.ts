import { type Case, countLoggedIn, during, isMissing, logIn, times } from '../case.ts'

export const userCases: Case[] = [
  {
    name: 'The sessions of a user can be listed: 5 of 5 devices',
    async run({ browser }) {
      const devices = Array.from({ length: 5 }, browser)
      for (const device of devices) await logIn(device, 'ada')
      const answer = await (devices[0] ?? browser()).send('/sessions')
      return isMissing(answer) ? null : { held: Number(answer.body.count), of: 5 }
    },
  },
  {
    name: '60 logins of a user at once are all in the list',
    async run({ browser }) {
      const first = await logIn(browser(), 'ada')
      if (isMissing(await first.send('/sessions'))) return null
      const devices = Array.from({ length: 59 }, browser)
      await Promise.all(devices.map((device) => device.send('/login', { user: 'ada' })))
      return { held: Number((await first.send('/sessions')).body.count), of: 60 }
    },
  },
  {
    name: '60 logins of a user at once, then "log out everywhere": all end',
    async run({ browser }) {
      const first = await logIn(browser(), 'ada')
      const devices = Array.from({ length: 59 }, browser)
      await Promise.all(devices.map((device) => device.send('/login', { user: 'ada' })))
      if (isMissing(await first.send('/end-all'))) return null
      return { held: 60 - (await countLoggedIn([first, ...devices])), of: 60 }
    },
  },
  {
    name: '"Log out everywhere" is final, though a request in flight then saves',
    run: ({ browser }) =>
      times(20, async (trial) => {
        const user = `user${trial}`
        const [one, two] = [await logIn(browser(), user), await logIn(browser(), user)]
        const slow = (hold: string) => two.copy().send('/me', undefined, hold)
        const isOffered = await during(slow, () => one.send('/end-all'))
        return isOffered ? (await two.user()) === null : null
      }),
  },
  {
    name: '"Log out everywhere" during a login: the new session ends, or is in the list',
    run: ({ browser }) =>
      times(20, async (trial) => {
        const user = `user${trial}`
        const [one, two] = [await logIn(browser(), user), browser()]
        const [ended] = await Promise.all([one.send('/end-all'), two.send('/login', { user })])
        if (isMissing(ended)) return null
        if ((await two.user()) === null) return true
        return (await two.send('/sessions')).body.count === 1
      }),
  },
  {
    name: 'A login that is cut off at Redis leaves no session that the list does not have',
    run: ({ browser, cutNext }) =>
      times(10, async (trial) => {
        const user = `user${trial}`
        const one = await logIn(browser(), user)
        if (isMissing(await one.send('/sessions'))) return null
        const two = browser()
        const cut = cutNext(trial % 2 === 0 ? 'before' : 'after')
        const { status } = await two.send('/login', { user }, undefined, 5_000)
        await cut
        const works = status === 200 && (await two.send('/me')).status === 200
        const count = await listed(one)
        return works ? count === 2 : count !== null && count <= 2
      }),
  },
]

/** The length of the list, once the application has a connection again. */
async function listed(browser: { send(path: string): Promise<{ body: Record<string, unknown> }> }) {
  for (let tries = 0; tries < 50; tries++) {
    const { body } = await browser.send('/sessions')
    if (typeof body.count === 'number') return body.count
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return null
}
