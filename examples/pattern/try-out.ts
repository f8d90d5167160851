const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const VIEWS = 1_000
const ITEMS = 100

/** The functions that all four files have. */
interface Sessions {
  login(user: string): Promise<string>
  view(token: string, item: string): Promise<unknown>
  recent(limit?: number): Promise<string[]>
  logout(token: string): Promise<boolean>
  close(): Promise<void>
}

/** Shows on the terminal what the four functions do, and how long 1,000 views take. */
export async function tryOut(open: (url: string) => Promise<Sessions>): Promise<void> {
  try {
    await show(await open(url))
  } catch (error) {
    console.error(
      `${String(error).replace(/\.$/, '')}. Is Redis running, and does REDIS_URL (default redis://127.0.0.1:6379) have its password?`,
    )
    process.exit(1)
  }
}

async function show(sessions: Sessions): Promise<void> {
  const token = await sessions.login('ada')
  console.log('login("ada")              a token of', token.length, 'characters')
  console.log('view(token, "book")      ', await sessions.view(token, 'book'))
  console.log('recent()                 ', await sessions.recent(3))

  const items = Array.from({ length: VIEWS }, (_, view) => `item ${view % ITEMS}`)
  for (const callers of [1, 64]) {
    const waiting = items.values()
    const begun = performance.now()
    const caller = async () => {
      for (const item of waiting) await sessions.view(token, item)
    }
    await Promise.all(Array.from({ length: callers }, caller))
    const ms = (performance.now() - begun).toFixed(0)
    console.log(`${VIEWS} views, ${callers} at a time`.padEnd(25), `${ms} ms`)
  }

  console.log('logout(token)            ', await sessions.logout(token))
  console.log('view(token, "book")      ', await sessions.view(token, 'book'))
  await sessions.close()
}
