import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newSecret } from '../src/places.ts'
import { freePorts } from '../src/ports.ts'
import { isAlive } from '../src/processes.ts'
import { startStack } from '../src/stack.ts'
import { filesIn, processesOf, temporaryFolder } from '../src/testing/folders.ts'
import { redisForThisTest } from '../src/testing/redis.ts'
import { listening } from './support/listening.ts'
import { expectNothingLeft, refused, sh, started } from './support/start.ts'

describe('npm start', () => {
  test('the example commands work, Ctrl-C leaves no process or file, and the next start has the data', async () => {
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

    // The naive API accepts tokens of the batch API.
    const view = `curl -s ${stack.record.apis[1]?.url}/views -H "authorization: Bearer ${answers[2]}"`
    const naive = await sh(`${view} -H 'content-type: application/json' -d '{"item":"tea"}'`)
    expect(JSON.parse(naive)).toMatchObject({ item: 'tea', views: 2 })

    expect(password).not.toBe('')
    expect(stack.output.join('\n')).not.toContain(password)

    const second = (await refused(/kill/, {}, { state: stack.state })).join('\n')
    expect(second).toContain('already running')
    expect(second).toContain(`kill ${stack.pid}`)

    const report = `${stack.record.apis[0]?.url}/report`
    expect((await fetch(report)).status).toBe(404)
    await writeFile(join(stack.state, 'report', 'latest.html'), '<!doctype html>\n')
    expect(await (await fetch(report)).text()).toBe('<!doctype html>\n')

    stack.signal('SIGINT')
    stack.signal('SIGINT') // one Ctrl-C: npm forwards the signal that the terminal has already sent
    expect(await stack.exited).toEqual({ code: 0, signal: null })
    expect(stack.output.join('\n')).not.toContain('Killing')
    await expectNothingLeft(stack)

    // The token is valid after a restart.
    const again = await started({ TRANSPORT: 'unix' }, stack)
    const { pathname } = new URL(again.record.redis.url)
    expect(pathname).toBe(join(again.state, 'run', 'redis.sock'))
    const [, command] = again.output.filter((line) => line.includes('curl '))
    expect(JSON.parse(await sh(`TOKEN='${answers[2]}'\n${command}`))).toMatchObject({ views: 3 })
    again.signal('SIGHUP')
    expect(await again.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(again)
  })

  test.for(['redis', 'api'] as const)(
    'if %s is killed, reports it and stops the other programs',
    async (who) => {
      const stack = await started()
      const pid = who === 'redis' ? stack.record.redis.pid : stack.record.apis[1]?.pid
      process.kill(pid ?? 0, 'SIGKILL')
      expect(await stack.exited).toEqual({ code: 1, signal: null })
      const name = who === 'redis' ? 'Redis (patched)' : 'the naive API'
      expect(stack.output.join('\n')).toContain(`${name} exited unexpectedly (SIGKILL)`)
      await expectNothingLeft(stack)
    },
  )

  test('after SIGKILL its programs exit, and the next start has the data', async () => {
    const stack = await started()
    const [login = '', view = ''] = stack.output.filter((line) => line.includes('curl '))
    const token = (await sh(`${login}\necho "$TOKEN"`)).trim()
    stack.signal('SIGKILL')
    await stack.exited
    await expect.poll(() => processesOf(stack.state)).toEqual([])
    const again = await started({}, stack)
    expect(JSON.parse(await sh(`TOKEN='${token}'\n${view}`))).toMatchObject({ user: 'ada' })
    again.signal('SIGTERM')
    expect(await again.exited).toEqual({ code: 0, signal: null })
    await expectNothingLeft(again)
  })

  test('uses the Redis of REDIS_URL and leaves it running', async () => {
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

describe('npm start fails', () => {
  test('if a port is in use, before it starts anything', async () => {
    const state = await temporaryFolder()
    const ports = await freePorts(3)
    await listening({ port: ports[1], host: '127.0.0.1' })
    const output = await refused(/in use/, {}, { state, ports })
    expect(output).toHaveLength(1)
    expect(output[0]).toContain(`Port ${ports[1]} for the naive API is already in use`)
    expect(output[0]).toContain('--naive-port or NAIVE_PORT')
    expect(await filesIn(state)).toEqual([])
    expect(await processesOf(state)).toEqual([])
  })

  test('if its folder cannot be created, also below /proc', async () => {
    const state = await refused(/ONETRIP_STATE/, {}, { state: '/proc/onetrip' })
    expect(state.join('\n')).toMatch(/^Cannot write to the folder \/proc\/onetrip\/run: ENOENT/)
    const home = await refused(/ONETRIP_HOME/, { ONETRIP_HOME: '/proc/onetrip' })
    expect(home.join('\n')).toMatch(/^Cannot write to the folder \/proc\/onetrip: ENOENT/)
  })

  test('at once if Redis is killed while the APIs start', async () => {
    const [directory, [port = 0, api = 0]] = [await temporaryFolder(), await freePorts(2)]
    const secrets = join(directory, 'secrets')
    const silent = join(directory, 'silent.ts')
    await writeFile(silent, 'setInterval(() => {}, 1_000)')
    const kill = async () => {
      process.kill(Number(await readFile(join(directory, 'redis.pid'), 'utf8')), 'SIGKILL')
    }
    const starting = startStack({
      redis: {
        kind: 'own',
        build: 'patched',
        transport: 'tcp',
        port,
        run: directory,
        directory,
        secrets,
      },
      host: '127.0.0.1',
      sessionSecret: newSecret(),
      signal: new AbortController().signal,
      apis: [{ variant: 'batch', program: silent, port: api }],
      onStep: (text) => void (text === 'Starting the APIs' && kill()),
    })
    await expect(starting).rejects.toThrow('Redis (patched) exited unexpectedly (SIGKILL)')
    expect(await processesOf(directory)).toEqual([])
  })

  test('if REDIS_URL cannot be used, without printing its password', async () => {
    const [closedPort] = await freePorts(1)
    const { socket } = await redisForThisTest()
    const wrong = [
      [`redis://me:secret@127.0.0.1:${closedPort}`, `redis://127.0.0.1:${closedPort}`, ''],
      [`unix://${socket}?db=99`, `unix://${socket}?db=99`, 'ERR DB index is out of range'],
    ] as const
    for (const [REDIS_URL, shown, why] of wrong) {
      const output = (await refused(/cannot (be used|start)/, { REDIS_URL })).join('\n')
      expect(output).toContain(`The Redis at ${shown} cannot be used: ${why}`)
      expect(output).not.toContain('secret')
    }
  })
})
