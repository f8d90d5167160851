import { type Case, during, times } from '../case.ts'

/** A request has loaded its session and waits; then the session ends; then the request goes on. */
const logoutDuring =
  (path: string, body?: object): Case['run'] =>
  ({ loggedIn }) =>
    times(40, async (trial) => {
      const browser = await loggedIn(`user${trial}`)
      const stolen = browser.copy()
      const request = (hold: string) => browser.copy().send(path, body, hold)
      const isOffered = await during(request, () => browser.send('/logout'))
      return isOffered ? (await stolen.user()) === null : null
    })

export const logoutCases: Case[] = [
  {
    name: 'A logout is final, though a request in flight then saves a change',
    run: logoutDuring('/set', { field: 'theme', value: 'dark' }),
  },
  {
    name: 'A logout is final, though a request in flight then extends the session',
    run: logoutDuring('/me'),
  },
  {
    name: 'A logout at the same time as ten requests is final',
    run: ({ loggedIn }) =>
      times(20, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const stolen = browser.copy()
        const others = Array.from({ length: 10 }, (_, index) =>
          index % 2 === 0
            ? browser.copy().send('/me')
            : browser.copy().send('/set', { field: `f${index}`, value: index }),
        )
        await Promise.all([...others, browser.send('/logout')])
        return (await stolen.user()) === null
      }),
  },
  {
    name: 'An expired session stays expired, though a request in flight then saves',
    run: ({ app, loggedIn }) =>
      times(10, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const body = { field: 'theme', value: 'dark' }
        const request = (hold: string) => browser.copy().send('/set', body, hold)
        if (!(await during(request, () => app.expire()))) return null
        return (await browser.user()) === null
      }),
  },
  {
    name: 'A session that has expired is refused',
    run: ({ app, loggedIn }) =>
      times(5, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        await app.expire()
        return (await browser.user()) === null
      }),
  },
  {
    name: 'The cookie of a logged-out session is refused',
    run: ({ loggedIn }) =>
      times(10, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const stolen = browser.copy()
        await browser.send('/logout')
        return (await stolen.user()) === null
      }),
  },
]
