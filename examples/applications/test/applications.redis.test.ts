import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'

const names = ['sale', 'feed', 'risk', 'viewers'] as const

const fileOf = (name: string) => join(import.meta.dirname, '..', `${name}.ts`)
const textOf = (name: string) => readFileSync(fileOf(name), 'utf8')

/** A Redis without data, and a client of it. */
async function emptyRedis() {
  const server = await redisForThisTest()
  const redis = new Redis(server.socket, { retryStrategy: () => null })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return { socket: server.socket, program: server.program, redis }
}

const runProgram = (name: string, url: string, env: NodeJS.ProcessEnv = {}) =>
  promisify(execFile)(process.execPath, [fileOf(name), ...(url ? [url] : [])], {
    env: { ...process.env, ...env },
  })

const output = {
  sale: [
    /^DECR in a script, buyers +[\d,]+\/s +[\d,]+\/s$/m,
    /^HINCRBY in a script, buyers +[\d,]+\/s +[\d,]+\/s$/m,
    /^ {2}\d+ sales of 50 pieces to 100 buyers: each sold 50$/m,
  ],
  feed: [
    /^RPUSH to 100 timelines, posts +[\d,]+\/s +[\d,]+\/s$/m,
    /^LPUSH to 100 timelines, posts +[\d,]+\/s +[\d,]+\/s$/m,
    /^LRANGE of 20 entries, pages +[\d,]+\/s +[\d,]+\/s$/m,
    /^ {2}a timeline has [1-9]\d* entries$/m,
  ],
  risk: [
    /^HGETALL of 4 keys, checks +[\d,]+\/s +[\d,]+\/s$/m,
    /^HGETALL and HSET, payments +[\d,]+\/s +[\d,]+\/s$/m,
    /^HINCRBY, 100 together, payments +[\d,]+\/s +[\d,]+\/s$/m,
    /^ {2}recorded of the card: \{ payments: '[1-9]\d*', spent: '[1-9]\d*' \}$/m,
  ],
  viewers: [
    /^40 SETBITs, viewers +[\d,]+\/s +[\d,]+\/s$/m,
    /^BITFIELD GET, viewers +[\d,]+\/s +[\d,]+\/s$/m,
    /^ {2}[1-9]\d* viewers; asked for [1-9]\d*, half of them strangers: found [1-9]\d*$/m,
  ],
}

describe.each(names)('%s', (name) => {
  test('prints what it did by trip and by pipeline, and leaves no key', async () => {
    const { socket, redis } = await emptyRedis()
    const { stdout, stderr } = await runProgram(name, '', { REDIS_URL: socket })
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^ +one command a trip +one pipeline$/m)
    for (const line of output[name]) expect(stdout).toMatch(line)
    expect(await redis.dbsize()).toBe(0)
  })

  test('removes its keys, and no others, if it is interrupted', async () => {
    const { socket, redis } = await emptyRedis()
    await redis.set('example:other', 'stays')
    const program = spawn(process.execPath, [fileOf(name), socket], { stdio: 'pipe' })
    const exited = once(program, 'close')
    let stderr = ''
    program.stderr.on('data', (data) => (stderr += data))
    await expect.poll(() => redis.dbsize()).toBeGreaterThan(1)
    program.kill('SIGINT')
    expect(await exited).toEqual([1, null])
    expect(stderr).toContain('SIGINT')
    expect(await redis.keys('*')).toEqual(['example:other'])
  })

  test('without Redis, or with another URL, it says why it cannot run', async () => {
    const missing = '/nowhere/redis.sock'
    const failure = (words: string) => ({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(new RegExp(`${words}.*first argument or in REDIS_URL`)),
    })
    await expect(runProgram(name, missing)).rejects.toMatchObject(failure('ENOENT /nowhere'))
    const http = { REDIS_URL: 'http://127.0.0.1:1' }
    await expect(runProgram(name, '', http)).rejects.toMatchObject(failure('no URL of a Redis'))
  })

  test('is whole on one page, and measures as the others', () => {
    const text = textOf(name)
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(130)
    const same = text.slice(text.indexOf('// From here on, all four files are the same.'))
    expect(same.length).toBeGreaterThan(1_000)
    expect(same).toBe(textOf('sale').slice(-same.length))
    const modules = Array.from(text.matchAll(/^import .* from '(.*)'$/gm), ([, module]) => module)
    expect(
      modules.filter((module) => module !== 'ioredis' && !module?.startsWith('node:')),
    ).toEqual([])
    expect(text).not.toMatch(/import\(/)
  })
})

test('a Redis that stops meanwhile ends the program with an error', async () => {
  const { socket, redis, program } = await emptyRedis()
  const running = runProgram('sale', socket)
  const failed = expect(running).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/Connection is closed|ECONNRESET|EPIPE/),
  })
  await expect.poll(() => redis.dbsize()).toBeGreaterThan(0)
  program.signal('SIGKILL')
  await failed
})
