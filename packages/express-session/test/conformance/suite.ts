import { type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { type Application, Browser, type Contender } from './application.ts'
import { betterAuthOurs, betterAuthRedis } from './applications/better-auth.ts'
import {
  expressConnectRedis,
  expressOurs,
  fastifyConnectRedis,
  fastifyOurs,
} from './applications/frameworks.ts'
import { onetripExpress, onetripFastify } from './applications/onetrip.ts'
import { type Case, type Count, logIn, SECRETS } from './case.ts'
import { changeCases } from './cases/changes.ts'
import { faultCases } from './cases/faults.ts'
import { loginCases } from './cases/logins.ts'
import { logoutCases } from './cases/logout.ts'
import { userCases } from './cases/users.ts'
import { Relay } from './relay.ts'

export const ours: readonly Contender[] = [
  onetripFastify,
  onetripExpress,
  expressOurs,
  fastifyOurs,
  betterAuthOurs,
]
export const others: readonly Contender[] = [
  expressConnectRedis,
  fastifyConnectRedis,
  betterAuthRedis,
]

export const groups: ReadonlyMap<string, readonly Case[]> = new Map([
  ['Logout and expiry', logoutCases],
  ['Changes', changeCases],
  ['Login and cookies', loginCases],
  ['Sessions of a user', userCases],
  ['Faults', faultCases],
])

/** A Redis for many trials, which keeps its data over a restart. */
export const startRedis = (): Promise<TestRedis> =>
  testRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })

/** Runs one case against one contender. */
export async function run(
  one: Case,
  contender: Contender,
  redis: TestRedis,
): Promise<Count | null> {
  const client = new Redis(redis.socket)
  await client.flushall()
  client.disconnect()
  const relay = new Relay(redis.socket)
  const redisPort = await relay.listen()
  const cutNext = (phase: 'before' | 'after') => relay.cutNext(phase)
  const started: Application[] = []
  const start = async (secrets: readonly string[]) => {
    const app = await contender.start({ redisPort, secrets })
    started.push(app)
    return app
  }
  try {
    const app = await start(SECRETS)
    const browser = () => new Browser(app)
    const loggedIn = (user = 'ada') => logIn(browser(), user)
    return await one.run({ app, redis, cutNext, browser, loggedIn, another: start })
  } finally {
    redis.program.signal('SIGCONT')
    await Promise.all(started.map((app) => app.close()))
    await relay.close()
  }
}
