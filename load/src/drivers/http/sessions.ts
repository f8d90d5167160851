import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { Pool } from 'undici'

const AT_ONCE = 8

const LIMITED =
  'it limits the logins from one address (429). If the API is yours, start it with LOGIN_LIMIT_PER_ADDRESS=0 during the measurement, or use fewer --sessions.'

/**
 * Logs in `count` different users.
 *
 * @returns their tokens. `end` logs all users out if the API answers, and never rejects.
 * @throws Problem when the API refuses a login or does not answer; the reason of `signal`. Users who are already
 *   logged in are logged out.
 */
export async function logIn(url: string, count: number, signal: AbortSignal) {
  const name = `load-${process.pid}-${Date.now().toString(36)}`
  const headers = { 'content-type': 'application/json' }
  const tokens: string[] = []
  try {
    await inParallel(url, count, async (pool, index) => {
      signal.throwIfAborted()
      const body = JSON.stringify({ user: `${name}-${index + 1}` })
      const answer = await pool.request({ method: 'POST', path: '/login', headers, body })
      const text = await answer.body.text()
      if (answer.statusCode === 429) throw new Error(LIMITED)
      if (answer.statusCode !== 200) throw new Error(`it answered ${answer.statusCode} ${text}`)
      tokens.push(JSON.parse(text).token)
    })
    return { tokens, end: () => logOut(url, tokens) }
  } catch (cause) {
    await logOut(url, tokens)
    signal.throwIfAborted()
    throw new Problem(`Logging in at ${url} failed: ${messageOf(cause)}`, { cause })
  }
}

async function logOut(url: string, tokens: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(5_000) // for all logouts together, because sessions expire anyway
  await inParallel(url, tokens.length, async (pool, index) => {
    const headers = { authorization: `Bearer ${tokens[index]}` }
    const { body } = await pool.request({ method: 'POST', path: '/logout', headers, signal })
    await body.dump()
  }).catch(() => {}) // the API has stopped, and the sessions expire
}

/** Runs `work` for 0 to `count` - 1, eight at a time. Stops at the first failure and rejects with it. */
async function inParallel(
  url: string,
  count: number,
  work: (pool: Pool, index: number) => Promise<void>,
): Promise<void> {
  const pool = new Pool(url, { connections: AT_ONCE, headersTimeout: 10_000 })
  try {
    for (let first = 0; first < count; first += AT_ONCE) {
      const length = Math.min(AT_ONCE, count - first)
      const running = Array.from({ length }, (_, index) => work(pool, first + index))
      const results = await Promise.allSettled(running)
      for (const result of results) if (result.status === 'rejected') throw result.reason
    }
  } finally {
    await pool.destroy()
  }
}
