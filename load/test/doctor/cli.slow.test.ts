import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unixUrl } from '@onetrip/stack/address.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import type { DoctorReport } from '../../src/doctor/report.ts'
import { runLoad } from '../support/run.ts'
import { reconnecting } from './clients.ts'
import { type DoctorRun, runDoctor } from './run-doctor.ts'

test('exits with 4 for findings of the severity --fail-on, and writes a report', async () => {
  const { socket } = await redisForThisTest()
  reconnecting(socket, 'shop')
  const url = `--url=${unixUrl(socket)}`
  const folder = await temporaryFolder()
  const json = join(folder, 'report.json')
  let ran: DoctorRun | undefined
  const code = async () => {
    ran = await runDoctor([url, '--fail-on=low', '--json', json])
    return ran.code
  }
  await expect.poll(code).toBe(4)
  expect(ran?.text).toMatch(/^1\. \[(high|medium|low)\] Clients open connections and close them /m)
  expect(ran?.text).toMatch(/^ {3}Remedy: Create one client or connection pool/m)
  const report: DoctorReport = JSON.parse(await readFile(json, 'utf8'))
  expect(report).toMatchObject({ format: 'onetrip-doctor/1', unseen: [] })
  expect(report.findings[0]).toMatchObject({ id: 'connection-churn', saving: expect.any(Number) })
  expect(report.commands.get?.calls).toBeGreaterThan(0)
  expect((await runDoctor([url, '--fail-on=none'])).code).toBe(0)
})

test('finds nothing on an idle server', async () => {
  const { socket } = await redisForThisTest()
  const { code, text } = await runDoctor(['--fail-on=low', '--stall=60000'], {
    REDIS_URL: unixUrl(socket),
  })
  expect(text).toMatch(/^Nothing found\.$/m)
  expect(code).toBe(0)
})

test('without permissions it lists the missing data, and --help the ACL rules', async () => {
  const password = 'pass:w/rd@x'
  const { socket } = await redisForThisTest({ config: { 'slowlog-log-slower-than': '0' } })
  const admin = new Redis(socket)
  onTestFinished(() => admin.disconnect())
  await admin.set('key', 'value')
  await admin.call('ACL', 'SETUSER', 'doctor', 'on', `>${password}`, '-@all', '+auth', '+info')
  const url = unixUrl(socket).replace('unix://', 'unix://doctor:PASSWORD@localhost')
  const env = { REDIS_URL: url.replace('PASSWORD', encodeURIComponent(password)) }
  const folder = await temporaryFolder()
  const json = join(folder, 'report.json')
  const examine = async () => {
    const args = ['--stall=0', '--fail-on=none', '--json', json]
    const { code, text, errors } = await runDoctor(args, env)
    expect(code).toBe(0)
    const written = await readFile(json, 'utf8')
    for (const shown of [text, errors, written]) {
      expect(shown).not.toContain(password)
      expect(shown).not.toContain(encodeURIComponent(password))
    }
    const { unseen }: DoctorReport = JSON.parse(written)
    for (const { command } of unseen) expect(text).toContain(`${command}: NOPERM`)
    return unseen.map(({ command }) => command)
  }
  const commands = ['CLIENT LIST', 'SLOWLOG GET', 'LATENCY LATEST', 'CONFIG GET']
  expect(await examine()).toEqual(commands)
  const help = (await runDoctor(['--help'])).text.replaceAll(/\s+/g, ' ')
  const [, rules = ''] = /ACL SETUSER doctor on >PASSWORD (.*?) {1,2}Env/.exec(help) ?? []
  await admin.call('ACL', 'SETUSER', 'doctor', ...rules.trim().split(' '))
  expect(await examine()).toEqual([])

  const file = join(folder, 'password')
  await writeFile(file, password)
  const bare = url.replace(':PASSWORD', '')
  expect((await runDoctor([`--url=${bare}`], { REDIS_PASSWORD_FILE: file })).code).toBe(0)
})

test('does not send CLIENT LIST with more connections than --max-clients', async () => {
  const { socket } = await redisForThisTest()
  const { text } = await runDoctor([`--url=${unixUrl(socket)}`, '--max-clients=0'])
  expect(text).toMatch(/CLIENT LIST: not sent: with 1 connection .* --max-clients 1$/m)
})

test.each([
  [[], 'Give the address of a server: --url'],
  [['--url=redis://:secret@127.0.0.1:6379'], 'A password on the command line is visible'],
  [['--url=redis:secret@x'], 'is not a valid Redis URL'],
  [['--url=redis://127.0.0.1:1'], 'The Redis at redis://127.0.0.1:1 cannot be used: connect EC'],
  [['--url=redis://127.0.0.1:1', '--fail-on=much'], 'Allowed choices are high, medium, low, none'],
])('rejects %s', async (args, words) => {
  const { code, errors } = await runDoctor(args)
  expect(code).toBe(1)
  expect(errors).toContain(words)
  expect(errors).not.toMatch(/secret|at .*:\d+:/)
})

test('lists a command that the server does not have, without its arguments', async () => {
  const include = join(await temporaryFolder(), 'renamed.conf')
  await writeFile(include, 'rename-command CONFIG ""\n')
  const { socket } = await redisForThisTest({ config: { include } })
  const { code, text } = await runDoctor([`--url=${unixUrl(socket)}`])
  expect(code).toBe(0)
  expect(text).toMatch(/^ {2}CONFIG GET: ERR unknown command 'CONFIG'$/im)
})

test('Ctrl-C ends the watch immediately', async () => {
  const { socket } = await redisForThisTest()
  const state = await temporaryFolder()
  const args = ['doctor', '--watch=3600', `--url=${unixUrl(socket)}`]
  const doctor = await runLoad({ state, args, until: /^Watching / })
  doctor.signal('SIGINT')
  expect(await doctor.exited).toEqual({ code: 130, signal: null })
  expect(doctor.output.at(-1)).toBe(
    'Interrupted. Everything that this command started has been stopped.',
  )
  expect(doctor.output.join('\n')).not.toContain('AbortError')
})

test('times out if the server does not answer', async () => {
  const [port = 0] = await freePorts(1)
  const redis = await redisForThisTest({ port })
  redis.program.signal('SIGSTOP')
  const { code, errors } = await runDoctor([`--url=redis://127.0.0.1:${port}`])
  expect(code).toBe(1)
  expect(errors).toMatch(/cannot be used: .*timed out/)
})
