import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { freePorts } from '../src/ports.ts'
import { isAlive } from '../src/processes.ts'
import { filesIn, processesOf, temporaryFolder } from '../src/testing/folders.ts'
import { runStart } from '../src/testing/programs.ts'
import { redisForThisTest } from '../src/testing/redis.ts'
import { clientOf, eventsUntil, input } from './support/demo.ts'
import { listening } from './support/listening.ts'
import {
  childrenOf,
  expectNothingLeft,
  portOptions,
  processesWith,
  refused,
  type Started,
  sh,
  started,
} from './support/start.ts'

describe('npm start', () => {
  test('the three lines that it prints work, and Ctrl-C leaves nothing', async () => {
    const stack = await started()
    expect(stack.record).toMatchObject({
      pid: stack.pid,
      redis: { transport: 'tcp', build: 'patched' },
      apis: [{ variant: 'batch' }, { variant: 'naive' }],
    })
    const { username, password, host } = new URL(stack.record.redis.url)
    expect([username, host]).toEqual(['operator', `127.0.0.1:${stack.ports[2]}`])
    expect(stack.output.join('\n')).toMatch(/build patched-[0-9a-f]{12}/)
    expect(stack.output.filter((line) => /^(batch|naive): /.test(line))).toEqual([]) // no warning

    const lines = stack.output.filter((line) => line.includes('curl '))
    expect(lines).toHaveLength(3)
    const answers = (await sh(`${lines.join('\n')}\necho "$TOKEN"`)).trim().split('\n')
    expect(JSON.parse(answers[0] ?? '')).toMatchObject({ user: 'ada', item: 'tea', views: 1 })
    expect(answers[1]).toContain('tea')

    // The naive one takes the pooled one's tokens.
    const view = `curl -s ${stack.record.apis[1]?.url}/views -H "authorization: Bearer ${answers[2]}"`
    const naive = await sh(`${view} -H 'content-type: application/json' -d '{"item":"tea"}'`)
    expect(JSON.parse(naive)).toMatchObject({ item: 'tea', views: 2 })

    expect(password).not.toBe('')
    expect(stack.output.join('\n')).not.toContain(password)
    stack.signal('SIGINT')
    stack.signal('SIGINT') // npm passes on what the terminal has sent as well: this is one Ctrl-C
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    expect(stack.output.join('\n')).not.toContain('Killing')
    await expectNothingLeft(stack)
  })

  test('SIGTERM and SIGHUP stop it, too, and tokens outlive a restart', async () => {
    const first = await started({ TRANSPORT: 'unix' })
    const { pathname, username } = new URL(first.record.redis.url)
    expect([pathname, username]).toEqual([join(first.state, 'run', 'redis.sock'), 'operator'])
    const [login = '', view = ''] = first.output.filter((line) => line.includes('curl '))
    const token = (await sh(`${login}\necho "$TOKEN"`)).trim()
    first.signal('SIGTERM')
    expect(await first.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(first)
    const second = await started({}, first)
    expect(JSON.parse(await sh(`TOKEN='${token}'\n${view}`))).toMatchObject({ user: 'ada' })
    second.signal('SIGHUP')
    expect(await second.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(second)
  })

  test.for(['redis', 'api'] as const)(
    'when %s dies, it says so and stops the rest',
    async (who) => {
      const stack = await started()
      const pid = who === 'redis' ? stack.record.redis.pid : stack.record.apis[1]?.pid
      process.kill(pid ?? 0, 'SIGKILL')
      expect(await stack.exited).toEqual({ code: 1, signal: null })
      const name = who === 'redis' ? 'Redis (patched)' : 'the naive API'
      expect(stack.output.join('\n')).toContain(`${name} ended by itself (SIGKILL)`)
      await expectNothingLeft(stack)
    },
  )

  test('when it is killed, its programs end, and the next start has the data', async () => {
    const stack = await started()
    const [login = '', view = ''] = stack.output.filter((line) => line.includes('curl '))
    const token = (await sh(`${login}\necho "$TOKEN"`)).trim()
    stack.signal('SIGKILL')
    await stack.exited
    await expect.poll(() => processesOf(stack.state)).toEqual([])
    const again = await started({}, stack)
    expect(JSON.parse(await sh(`TOKEN='${token}'\n${view}`))).toMatchObject({ user: 'ada' })
    again.signal('SIGINT')
    expect(await again.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(again)
  })

  test('a second one on the same data is refused, by the name of the first', async () => {
    const stack = await started()
    const output = await refused(/kill/, {}, { state: stack.state })
    expect(output[0]).toContain('already running')
    expect(output.join('\n')).toContain(`kill ${stack.pid}`)
  })

  test('the pooled API shows the latest report at /report, as soon as there is one', async () => {
    const { state, ports } = await started()
    const url = `http://127.0.0.1:${ports[0]}/report`
    const absent = await fetch(url)
    expect(absent.status).toBe(404)
    expect(await absent.json()).toMatchObject({ message: expect.stringContaining('npm run load') })
    await writeFile(join(state, 'report', 'latest.html'), '<!doctype html>\n')
    expect(await (await fetch(url)).text()).toBe('<!doctype html>\n')
  })

  test("a Redis of the user's is used, named as such, and left running", async () => {
    const [port = 0] = await freePorts(1)
    const theirs = await redisForThisTest({ port })
    const url = `redis://127.0.0.1:${port}`
    const stack = await started({ REDIS_URL: url })
    expect(stack.output.join('\n')).toContain(`${url} (REDIS_URL)`)
    expect(stack.record.redis).toMatchObject({ url, build: 'foreign', pid: null })
    stack.signal('SIGINT')
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(stack)
    expect(isAlive(theirs.program.pid)).toBe(true)
  })
})

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
      expect(lanes.length).toBeGreaterThanOrEqual(6) // two APIs, the load generator, a guard for each
      process.kill(who === 'npm start' ? stack.pid : (demo ?? 0), 'SIGKILL')
      await stack.exited
      await expect.poll(() => lanes.filter(isAlive)).toEqual([])
      if (who === 'npm start') {
        await expect.poll(() => processesOf(stack.state)).toEqual([])
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

describe('npm start, in vain', () => {
  test('a taken port is named before anything is started', async () => {
    const state = await temporaryFolder()
    const ports = await freePorts(3)
    await listening({ port: ports[1], host: '127.0.0.1' })
    const output = await refused(/taken/, {}, { state, ports })
    expect(output).toHaveLength(1)
    expect(output[0]).toContain(`Port ${ports[1]}, meant for the naive API, is taken`)
    if (process.platform === 'linux') expect(output[0]).toContain(`kill ${process.pid}`)
    expect(output[0]).toContain('--naive-port or NAIVE_PORT')
    expect(await filesIn(state)).toEqual([])
    expect(await processesOf(state)).toEqual([])
  })

  test('an unreachable REDIS_URL is named, without its password', async () => {
    const [nobody] = await freePorts(1)
    const env = { REDIS_URL: `redis://me:secret@127.0.0.1:${nobody}` }
    const output = (await refused(/cannot be used/, env)).join('\n')
    expect(output).toContain(`redis://127.0.0.1:${nobody} cannot be used`)
    expect(output).not.toContain('secret')
  })

  test('a database that REDIS_URL names and Redis does not have is refused before an API starts', async () => {
    const { socket } = await redisForThisTest()
    const env = { REDIS_URL: `unix://${socket}?db=99` }
    const output = (await refused(/cannot (be used|start)/, env)).join('\n')
    expect(output).toMatch(/The Redis at unix:.* cannot be used: ERR DB index is out of range/)
    expect(output).not.toContain('The API cannot start')
  })
})
