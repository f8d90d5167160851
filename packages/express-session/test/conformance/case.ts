import type { TestRedis } from '@onetrip/stack/testing/redis.ts'
import type { Application, Browser } from './application.ts'
import type { Relay } from './relay.ts'

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
  /** In front of Redis. */
  readonly relay: Relay
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
