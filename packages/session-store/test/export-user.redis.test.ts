import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { envOf, programsIn, textArguments } from './example.ts'
import { idOf, readyStore } from './fixture.ts'

const server = redisOfThisFile()

const [exportUser = ''] = programsIn('packages/session-store/REFERENCE.md').filter((program) =>
  program.includes('function exportUser('),
)

/** Prints what it exports for the token in its arguments. */
const PROGRAM = `${exportUser}
import { SessionStore } from '@onetrip/session-store'
const { REDIS_URL: url = '', SESSION_SECRET: secret = '' } = process.env
const own = new SessionStore({ redis: url, tokens: { secrets: [secret] }, janitor: 'elsewhere' })
await own.ready()
console.log(JSON.stringify(await exportUser(own, process.argv[1] ?? '')))
await own.close()`

test('the reference exports and erases the personal data of a user', async () => {
  const store = await readyStore({ redis: `unix://${server.socket}` })
  const { token } = await store.login('ada', { label: 'Firefox' })
  await store.recordView(token, 'book')
  await store.patch(token, { cart: ['book'] })
  const { token: other } = await store.login('eve')
  await store.recordView(other, 'pen')
  const [{ viewedAt = 0 } = {}] = await store.viewedItems(token)
  const { sessions } = await store.userSessions(token)

  const run = promisify(execFile)(process.execPath, textArguments(PROGRAM, token), {
    cwd: import.meta.dirname,
    env: envOf(server.socket),
  })
  expect(JSON.parse((await run).stdout)).toEqual({
    user: 'ada',
    sessions: [
      {
        ...sessions[0],
        label: 'Firefox',
        viewed: { book: `${viewedAt / 1000}` },
        data: expect.objectContaining({ cart: '["book"]', '': '1' }),
      },
    ],
  })

  expect(await store.endUserSessions('ada')).toBe(1)
  const keys = await server.redis.keys('*')
  expect(keys.filter((key) => key.includes('ada') || key.includes(idOf(token)))).toEqual([])
  expect(await store.viewedItems(other)).toHaveLength(1)
})
