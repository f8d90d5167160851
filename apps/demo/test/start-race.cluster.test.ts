import { join } from 'node:path'
import { expect, test } from 'vitest'
import { clusterStarted } from '../../stack/test/support/start.ts'
import type { Turn } from '../src/events.ts'
import { clientOf, eventsUntil, input } from './service/demo-service.ts'

test('a race runs on the remaining nodes, without distance and wire', async () => {
  const stack = await clusterStarted()
  process.kill(stack.record.redis.nodes?.[5]?.pid ?? 0, 'SIGKILL')
  await expect.poll(() => stack.output.join('\n')).toContain('exited unexpectedly')
  const url = stack.record.apis[0]?.url
  const { race } = (await (await fetch(`${url}/demo`)).json()) as { race: object }
  expect(race).toMatchObject({ distancesMs: [0], wire: false })
  const demo = clientOf(join(stack.state, 'run', 'demo.sock'))
  const seen = eventsUntil(demo.events(), 'turn', 'failed')
  expect((await demo.send('POST', '/race', input)).status).toBe(202)
  const last = (await seen).at(-1)
  expect(last).toMatchObject({ name: 'turn', data: { errors: 0 } })
  const turn = last?.data as Turn
  expect(turn.requests).toBeGreaterThan(0)
  // A naive view has five commands. Only those of primaries count, so none counts twice.
  expect(turn.commands / turn.requests).toBeGreaterThan(5)
  expect(turn.redisCpuUs).toBeGreaterThan(0)
  expect(await demo.send('POST', '/wire', input)).toEqual({
    status: 404,
    body: { message: expect.stringContaining('The wire is not available on a cluster') },
  })
})
