import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive } from '@onetrip/stack/processes.ts'
import { processesOf } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import {
  childrenOf,
  expectNothingLeft,
  processesWith,
  type Started,
  started,
} from '../../stack/test/support/start.ts'
import { clientOf, eventsUntil, input } from './service/demo-service.ts'

/** Starts a race on the demo service of a stack. Resolves after its first sample. */
async function racing({ state }: Started) {
  const demo = clientOf(join(state, 'run', 'demo.sock'))
  const seen = eventsUntil(demo.events(), 'sample', 'failed')
  expect((await demo.send('POST', '/race', input)).status).toBe(202)
  expect((await seen).at(-1)?.name).toBe('sample')
}

describe('the race of npm start', () => {
  test('Ctrl-C during a race leaves no process, nor does a second Ctrl-C', async () => {
    const stack = await started()
    await racing(stack)
    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)

    const impatient = await started({}, stack)
    await racing(impatient)
    impatient.signal('SIGINT')
    await delay(600) // within half a second, signals count as one Ctrl-C
    impatient.signal('SIGINT')
    await impatient.exited
    await expect.poll(() => processesOf(impatient.state)).toEqual([])
  })

  test.for(['the demo service', 'npm start'] as const)(
    'if %s is killed during a race, the APIs of its lanes exit, too',
    async (who) => {
      const stack = await started()
      await racing(stack)
      const [demo] = await processesWith(stack.state, 'demo/src/service/main.ts')
      const lanes = await childrenOf(demo ?? 0)
      expect(lanes.length).toBeGreaterThanOrEqual(4) // two APIs, a guard for each
      process.kill(who === 'npm start' ? stack.pid : (demo ?? 0), 'SIGKILL')
      await stack.exited
      await expect.poll(() => lanes.filter(isAlive)).toEqual([])
      if (who === 'npm start') {
        await expect.poll(() => processesOf(stack.state)).toEqual([])
        return
      }
      expect(stack.output.join('\n')).toContain('the demo service exited unexpectedly (SIGKILL)')
      await expectNothingLeft(stack)
    },
  )

  test('can be turned off', async () => {
    const { state, record } = await started({}, undefined, ['--no-race'])
    expect(await processesWith(state, 'demo/src/service/main.ts')).toEqual([])
    const off = await (await fetch(`${record.apis[0]?.url}/demo`)).json()
    expect(off).toMatchObject({ race: null, why: expect.any(String) })
  })
})
