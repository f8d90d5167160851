import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { onePipeline } from '../compare.ts'

/** A Redis without data, and a client of it. */
async function emptyRedis() {
  const server = await redisForThisTest()
  const redis = new Redis(server.socket, { retryStrategy: () => null })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return { socket: server.socket, program: server.program, redis }
}

const fileOf = (name: string) => join(import.meta.dirname, '..', `${name}.ts`)

const runProgram = (name: string, url: string, REDIS_URL = '') =>
  promisify(execFile)(process.execPath, [fileOf(name), ...(url ? [url] : [])], {
    env: { ...process.env, REDIS_URL },
  })

test.for([
  [
    'sale',
    ['DECR in a script, buyers', 'HINCRBY in a script, buyers'],
    /^ {2}\d+ sales of 50 pieces to 100 buyers: each sold 50$/m,
  ],
  [
    'feed',
    [
      'RPUSH to 100 timelines, posts',
      'LPUSH to 100 timelines, posts',
      'LRANGE of 20 entries, pages',
    ],
    /^ {2}a timeline has [1-9]\d* entries$/m,
  ],
  [
    'risk',
    ['HGETALL of 4 keys, checks', 'HGETALL and HSET, payments', 'HINCRBY, 100 together, payments'],
    /^ {2}recorded of the card: \{ payments: '[1-9]\d*', spent: '[1-9]\d*' \}$/m,
  ],
  [
    'viewers',
    ['40 SETBITs, viewers', 'BITFIELD GET, viewers'],
    /^ {2}[1-9]\d* viewers; asked for [1-9]\d*, half of them strangers: found [1-9]\d*$/m,
  ],
] as const)(
  '%s prints what it did by trip and by pipeline, and leaves no key',
  async ([name, rows, result]) => {
    const { socket, redis } = await emptyRedis()
    const { stdout, stderr } = await runProgram(name, '', socket)
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^ +one command a trip +one pipeline$/m)
    for (const row of rows)
      expect(stdout).toMatch(new RegExp(`^${row} +[\\d,]+/s +[\\d,]+/s$`, 'm'))
    expect(stdout).toMatch(result)
    expect(await redis.dbsize()).toBe(0)
  },
)

test('an interrupted program removes its keys, and no others', async () => {
  const { socket, redis } = await emptyRedis()
  await redis.set('example:other', 'stays')
  const program = spawn(process.execPath, [fileOf('feed'), socket], { stdio: 'pipe' })
  const exited = once(program, 'close')
  let stderr = ''
  program.stderr.on('data', (data) => (stderr += data))
  await expect.poll(() => redis.dbsize()).toBeGreaterThan(1)
  program.kill('SIGINT')
  expect(await exited).toEqual([1, null])
  expect(stderr).toContain('SIGINT')
  expect(await redis.keys('*')).toEqual(['example:other'])
})

test.for([
  ['/nowhere/redis.sock', /ENOENT \/nowhere.*first argument or in REDIS_URL/],
  ['http://127.0.0.1:1', /no URL of a Redis.*first argument or in REDIS_URL/],
] as const)('with %s, a program says why it cannot run', async ([url, stderr]) => {
  const failure = { code: 1, stdout: '', stderr: expect.stringMatching(stderr) }
  await expect(runProgram('sale', url)).rejects.toMatchObject(failure)
})

test('a Redis that stops meanwhile ends the program with an error', async () => {
  const { socket, redis, program } = await emptyRedis()
  const failed = expect(runProgram('sale', socket)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/Connection is closed|ECONNRESET|EPIPE/),
  })
  await expect.poll(() => redis.dbsize()).toBeGreaterThan(0)
  program.signal('SIGKILL')
  await failed
})

test('a pipeline in which one command fails throws its error', async () => {
  const { redis } = await emptyRedis()
  await redis.set('text', 'x')
  const commands = [['PING'], ['HGET', 'text', 'a'], ['PING']] as const
  await expect(onePipeline(redis, commands)).rejects.toThrow('WRONGTYPE')
})
