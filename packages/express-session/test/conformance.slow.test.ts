import { readFileSync } from 'node:fs'
import type { TestRedis } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { groups, others, ours, run, startRedis } from './conformance/suite.ts'
import { pagePath, withTable } from './conformance/table.ts'

/** Where ours fail, and why. */
const failing = new Map([
  // The middleware saves whole values, so that two requests read the same number.
  ['20 parallel requests add 1 to one field: all are counted', ['express-session', '@fastify']],
  // Names such as __proto__ are lost in a plain object, before the store sees them.
  ['Fields of any name are kept, or refused with an error', ['express-session', '@fastify']],
  // better-auth answers 200 to a sign-out whose storage has failed.
  ['Connection cut before Redis gets a logout: the answer is true', ['better-auth']],
  ['Connection cut after Redis made a logout: the answer is true', ['better-auth']],
  // better-auth signs its cookies with its first secret only.
  [
    'After a change of secrets, cookies of the old one work while it is configured',
    ['better-auth'],
  ],
])

let redis: TestRedis
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

describe.each(ours.map((contender) => [contender.name, contender] as const))(
  '%s',
  (name, contender) => {
    test.for([...groups.values()].flat())('$name', async (one) => {
      const count = await run(one, contender, redis)
      const fails = failing.get(one.name)?.some((text) => name.startsWith(text)) ?? false
      // How many of the parallel requests meet depends on chance; with one core, none may.
      if (fails && one.name.includes('add 1')) expect(count?.held).toBeGreaterThan(0)
      else if (fails) expect(count?.held).toBeLessThan(count?.of ?? 0)
      else if (count !== null || !name.startsWith('better-auth'))
        expect(count?.held).toBe(count?.of)
    })
  },
)

test('the page has each case and each application, and says where ours fail', () => {
  const page = readFileSync(pagePath, 'utf8')
  const names = [...groups.values()].flat().map(({ name }) => name)
  expect(names.filter((name) => !page.includes(`| ${name} `))).toEqual([])
  for (const { name } of [...ours, ...others]) expect(page).toContain(` ${name} `)
  expect(withTable(page, [])).not.toBe(page)
})
