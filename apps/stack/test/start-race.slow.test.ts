import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { freePorts } from '../src/ports.ts'
import { isAlive } from '../src/processes.ts'
import { processesOf, temporaryFolder } from '../src/testing/folders.ts'
import { runStart } from '../src/testing/programs.ts'
import { clientOf, eventsUntil, input } from './support/demo.ts'
import {
  expectNothingLeft,
  portOptions,
  processesWith,
  type Started,
  started,
} from './support/start.ts'

async function childrenOf(parent: number): Promise<number[]> {
  const text = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** The demo service of a stack, once the first sample of a race has come. */
async function racing({ state }: Started) {
  const demo = clientOf(join(state, 'run', 'demo.sock'))
  const seen = eventsUntil(demo.events(), 'sample', 'failed')
  expect((await demo.send('POST', '/race', input)).status).toBe(202)
  expect((await seen).at(-1)?.name).toBe('sample')
}

describe('the race of npm start', () => {
  test('Ctrl-C during a race leaves nothing, and so does a second one', async () => {
    const stack = await started()
    await racing(stack)
    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)

    const impatient = await started({}, stack)
    await racing(impatient)
    impatient.signal('SIGINT')
    await delay(600) // what counts as a second Ctrl-C comes half a second later
    impatient.signal('SIGINT')
    await impatient.exited
    await expect.poll(() => processesOf(impatient.state)).toEqual([])
  })

  test.for(['the demo service', 'npm start'] as const)(
    'when %s is killed during a race, the APIs of its lanes end, too',
    async (who) => {
      const stack = await started()
      await racing(stack)
      const [demo] = await processesWith(stack.state, 'src/demo.ts')
      const lanes = await childrenOf(demo ?? 0)
      expect(lanes.length).toBeGreaterThanOrEqual(3) // two APIs and the load generator
      process.kill(who === 'npm start' ? stack.pid : (demo ?? 0), 'SIGKILL')
      await stack.exited
      await expect.poll(() => lanes.filter(isAlive)).toEqual([])
      if (who === 'npm start') {
        // Its Redis and APIs are left, and named at the next start.
        for (const pid of await processesOf(stack.state)) process.kill(pid, 'SIGKILL')
        return
      }
      expect(stack.output.join('\n')).toContain('the demo service ended by itself (SIGKILL)')
      await expectNothingLeft(stack)
    },
  )

  test.for([{ RACE: 'off' }, {}] as const)('can be switched off (%j)', async (env) => {
    const state = await temporaryFolder()
    const ports = await freePorts(3)
    const off = 'RACE' in env ? [] : ['--no-race']
    const args = [...portOptions(ports), ...off]
    await runStart({ state, args, until: /^\s*Stop /, env })
    expect(await processesWith(state, 'src/demo.ts')).toEqual([])
    const answer = await fetch(`http://127.0.0.1:${ports[0]}/demo`)
    expect(await answer.json()).toMatchObject({ race: null, why: expect.any(String) })
  })

  test('both APIs offer it', async () => {
    const { record } = await started()
    for (const { url } of record.apis) {
      const { race } = (await (await fetch(`${url}/demo`)).json()) as { race: unknown }
      expect(race).toMatchObject({ rounds: 5, distancesMs: [0, 0.3, 1, 5, 48] })
    }
  })
})
