import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'
import { loadPath } from '../support/run.ts'

const short = ['--rounds=1', '--duration=0.1', '--watch=0.5']

describe('client', () => {
  test('on a Redis of its own: who opens a connection for each command, and what it costs', async () => {
    const { text, result } = await runExperiment('client', [...short, '--mine=1'])
    expect(result.samples).toHaveLength(8)
    for (const { case: one, values, errors } of result.samples) {
      expect(errors).toBeUndefined()
      expect(values.perSecond).toBeGreaterThan(0)
      expect(values.connections).toBeCloseTo(String(one.client).includes('reconnect') ? 1 : 0, 1)
      expect(values.mainCpuMicros).toBeGreaterThan(0)
    }
    expect(text).toMatch(/^redis-benchmark -c 1 .* 100 % +100 % /m)
    expect(text).toMatch(/^a connection for each command +25-30 % /m)
    expect(text).toContain("Your client's 1.00 commands/s are")
  })

  test("on a user's Redis: few commands, nothing left, no password printed", async () => {
    const password = 'pass:w/rd@x'
    const [port = 0] = await freePorts(1)
    const redis = await redisForThisTest({ port, config: { requirepass: password } })
    const login = encodeURIComponent(password)
    const env = { REDIS_URL: `redis://:${login}@127.0.0.1:${port}` }
    const other = reconnectForEver(redis.socket, password)
    const { text, result } = await runExperiment('client', short, env)
    const commands = 2 * (await other.stop())
    expect(text).toMatch(/a connection for every (1\.\d+|2\.\d+) commands: some client opens one/)
    expect(text).toContain('The reference is a plain socket')
    expect(result.load).toEqual({ Server: `redis://127.0.0.1:${port}` })
    for (const shown of [text, JSON.stringify(result)]) {
      expect(shown).not.toContain(password)
      expect(shown).not.toContain(login)
    }
    for (const { case: one, values } of result.samples) {
      expect(values.calls).toBeLessThanOrEqual(
        String(one.client).includes('reconnect') ? 200 : 1_000,
      )
    }
    const admin = new Redis(redis.socket, { password })
    onTestFinished(() => admin.disconnect())
    expect(await admin.dbsize()).toBe(0)
    const stats = await admin.info('stats')
    const processed = Number(/total_commands_processed:(\d+)/.exec(stats)?.[1])
    expect(processed - commands).toBeLessThan(20_000)
  })

  test.each([
    [['--url=redis://10.0.0.1:6379'], 'redis://10.0.0.1:6379 is not this machine'],
    [['--url=redis://:secret@127.0.0.1:6379'], 'A password on the command line is visible'],
    [['--url=redis:secret@x'], 'is not the address of a Redis'],
    [['--url=redis://127.0.0.1:1'], 'The Redis at redis://127.0.0.1:1 cannot be used: connect EC'],
  ])('refuses %s', async (args, words) => {
    const env = cleanEnv(await temporaryFolder())
    const ran = promisify(execFile)(process.execPath, [loadPath, 'client', ...args], { env })
    await expect(ran).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(words) })
    await expect(ran).rejects.not.toMatchObject({
      stderr: expect.stringMatching(/secret|at .*:\d+:/),
    })
  })

  test('gives a server up that does not answer', async () => {
    const [port = 0] = await freePorts(1)
    const redis = await redisForThisTest({ port })
    redis.program.signal('SIGSTOP')
    const args = [loadPath, 'client', `--url=redis://127.0.0.1:${port}`]
    const env = cleanEnv(await temporaryFolder())
    await expect(promisify(execFile)(process.execPath, args, { env })).rejects.toMatchObject({
      stderr: `The Redis at redis://127.0.0.1:${port} cannot be used: no answer for 3 s\n`,
    })
  })

  // A network namespace with a hundred ports, none of which is used again within a minute.
  const few =
    'ip link set lo up && sysctl -qw net.ipv4.tcp_tw_reuse=0 net.ipv4.ip_local_port_range='
  const isolated = (ports: string, ...args: string[]) => [
    '-rn',
    'sh',
    '-c',
    `${few}"${ports}" && exec "$0" "$@"`,
    ...args,
  ]
  const possible = spawnSync('unshare', isolated('50000 50099', 'true')).status === 0

  test.runIf(possible)('says what "Cannot assign requested address" means', async () => {
    const env = cleanEnv(await temporaryFolder())
    const args = isolated('50000 50099', process.execPath, loadPath, 'client', ...short)
    const { stdout } = await promisify(execFile)('unshare', args, { env })
    expect(stdout).toMatch(/^a plain socket per command ended early: connect EADDRNOTAVAIL/m)
    expect(stdout).toContain('There was no port left for another connection')
  })
})

/** A client of the kind that the experiment looks for: a connection for each AUTH and PING. */
function reconnectForEver(path: string, password: string) {
  const greeting = { protocol: 2, enableReadyCheck: false, disableClientInfo: true } as const
  let connections = 0
  let stopping = false
  const working = (async () => {
    while (!stopping) {
      const redis = new Redis(path, { ...greeting, password })
      await redis.ping()
      redis.disconnect()
      connections++
    }
  })()
  const stop = async () => {
    stopping = true
    await working
    return connections
  }
  onTestFinished(async () => void (await stop()))
  return { stop }
}
