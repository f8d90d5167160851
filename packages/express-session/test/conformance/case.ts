import type { TestRedis } from '@onetrip/stack/testing/redis.ts'
import { type Answer, type Application, type Browser, hold } from './application.ts'

/** One row of the table. Each run has an application of its own on an empty Redis. */
export interface Case {
  /** What should hold, such as "A logged-out session stays ended, though a request then saves". */
  readonly name: string
  /** How often it held. Null if the application does not offer what the case needs. */
  run(trial: Trial): Promise<Count | null>
}

export interface Count {
  readonly held: number
  readonly of: number
}

interface Trial {
  readonly app: Application
  readonly redis: TestRedis
  /**
   * Cuts the connection that sends the next command: before Redis has read it, or after Redis has executed it. Resolves
   * when it is cut.
   */
  cutNext(phase: 'before' | 'after'): Promise<void>
  /** A browser without cookies. */
  browser(): Browser
  /** A browser whose user has logged in. */
  loggedIn(user?: string): Promise<Browser>
  /** The same application once more, on the same Redis. Closed after the case. */
  another(secrets: readonly string[]): Promise<Application>
}

export const SECRETS = ['a-secret-for-tests-a-secret-for-tests']

/** Counts in how many of the trials `holds` returns true; null if it returns null. They run one after the other. */
export async function times(
  of: number,
  holds: (trial: number) => Promise<boolean | null>,
): Promise<Count | null> {
  let held = 0
  for (let trial = 0; trial < of; trial++) {
    const result = await holds(trial)
    if (result === null) return null
    if (result) held++
  }
  return { held, of }
}

/** The application does not offer this. */
export const isMissing = ({ status }: { status: number }): boolean => status === 501

let requests = 0

/**
 * Sends a request that loads its session and then waits while `act` runs. Returns whether the application offers both.
 *
 * @param request passes the name to `send`, at which the request waits.
 */
export async function during(
  request: (hold: string) => Promise<Answer>,
  act: () => Promise<unknown>,
): Promise<boolean> {
  const name = `request ${requests++}`
  const { arrived, release } = hold(name)
  const slow = request(name)
  if (await Promise.race([slow.then(isMissing), arrived.then(() => false)])) return false
  const answer = (await act()) as Answer | undefined
  release()
  await slow
  return !answer || !isMissing(answer)
}

/** Logs in, or fails: then the case proves nothing. */
export async function logIn(browser: Browser, user: string): Promise<Browser> {
  const { status } = await browser.send('/login', { user })
  if (status !== 200) throw new Error(`POST /login: ${status}`)
  return browser
}

/** How many of the browsers are logged in. */
export async function countLoggedIn(browsers: readonly Browser[]): Promise<number> {
  const users = await Promise.all(browsers.map((browser) => browser.user()))
  return users.filter((user) => user !== null).length
}
