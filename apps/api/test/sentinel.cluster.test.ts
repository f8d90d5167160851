import { setTimeout as delay } from 'node:timers/promises'
import { MASTER_NAME, testSentinels } from '@onetrip/stack/testing/sentinel.ts'
import { expect, onTestFinished, test } from 'vitest'
import { errorTable } from '../src/errors.ts'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, connectionsOf, logIn } from './client.ts'

/** Sentinels that a busy machine holds up for two seconds wait for thirty (their TILT mode). */
const failover = { timeout: 90_000 }

const killed =
  'the primary is killed under load: every request is answered, and the new primary is used'
test(killed, { timeout: 4 * failover.timeout }, async () => {
  const redis = await testSentinels()
  onTestFinished(() => redis.stop())
  const [primary, replica] = redis.servers
  const sentinels = redis.sentinels.map(({ port }) => `127.0.0.1:${port}`).join()
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `redis+sentinel://${sentinels}/${MASTER_NAME}`,
    REDIS_DEADLINE_MS: '2000',
  })
  const token = await logIn(url)
  const view = () => ask(`${url}/views`, { token, body: { item: 'book' } })
  expect(await view()).toMatchObject({ status: 200, views: 1 })
  expect(api.lastLines.join('\n')).toContain(`127.0.0.1:${primary?.port}`)
  expect(await primary?.admin.wait(1, 10_000)).toBe(1)

  const answers: Awaited<ReturnType<typeof view>>[] = []
  let running = true
  const viewer = async () => {
    while (running) {
      answers.push(await view())
      await delay(2)
    }
  }
  const viewing = Promise.all(Array.from({ length: 8 }, viewer))
  await expect.poll(() => answers.length).toBeGreaterThan(50)
  primary?.program.signal('SIGKILL')
  await expect.poll(() => answers.at(-1)?.status).toBe(503)
  await expect.poll(async () => (await view()).status, failover).toBe(200)
  await expect.poll(() => answers.at(-1)?.status, failover).toBe(200)
  running = false
  await viewing

  for (const { status, code } of answers.filter((answer) => answer.status !== 200)) {
    expect(status).toBe(503)
    expect(Object.keys(errorTable)).toContain(code)
  }
  // The session exists. Writes that the replica had not received are lost; no view counts twice.
  expect((await view()).views).toBeLessThanOrEqual(answers.length + 3)
  expect(await replica?.admin.role()).toContain('master')
  expect(await connectionsOf(url)).toEqual({ ready: 1, down: 0 })
  expect((await ask(`${url}/readyz`)).status).toBe(200)
  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
})
