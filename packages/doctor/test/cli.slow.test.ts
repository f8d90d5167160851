import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unixUrl } from '@onetrip/stack/address.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import type { DoctorReport } from '../src/report.ts'
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
  expect(ran?.text).toMatch(/^1\. \[(high|medium|low)\] /m)
  const report: DoctorReport = JSON.parse(await readFile(json, 'utf8'))
  expect(report).toMatchObject({ format: 'onetrip-doctor/1', unseen: [] })
  expect(report.findings[0]).toMatchObject({ id: 'connection-churn', saving: expect.any(Number) })
  expect(report.commands.get?.calls).toBeGreaterThan(0)
  expect((await runDoctor([url, '--fail-on=none'])).code).toBe(0)
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
  const commands = ['CLIENT LIST', 'SLOWLOG GET']
  expect(await examine()).toEqual(commands)
  const help = (await runDoctor(['--help'])).text.replaceAll(/\s+/g, ' ')
  const [, rules = ''] = /ACL SETUSER doctor on >PASSWORD (.*?) {1,2}Env/.exec(help) ?? []
  await admin.call('ACL', 'SETUSER', 'doctor', ...rules.trim().split(' '))
  expect(await examine()).toEqual([])
  const failed = await runDoctor([`--json=${folder}/none/x`], env)
  expect(failed).toMatchObject({ code: 1, errors: expect.stringContaining('cannot be written') })
  const old = await runDoctor([], { ...env, REDIS_PASSWORD_FILE: json })
  expect(old.errors).toContain('no longer reads REDIS_PASSWORD_FILE')
})

test.each([
  [['--url=redis://:secret@127.0.0.1:6379'], 'A password on the command line is visible'],
  [['--url=redis:secret@x'], 'is not a valid Redis URL'],
  [['--url=redis://127.0.0.1:1'], 'The Redis at redis://127.0.0.1:1 cannot be used: connect EC'],
])('rejects %s', async (args, words) => {
  const { code, errors } = await runDoctor(args)
  expect(code).toBe(1)
  expect(errors).toContain(words)
  expect(errors).not.toMatch(/secret|at .*:\d+:/)
})

test('times out if the server does not answer', async () => {
  const { socket, program } = await redisForThisTest()
  program.signal('SIGSTOP')
  const { code, errors } = await runDoctor([`--url=${unixUrl(socket)}`])
  expect(code).toBe(1)
  expect(errors).toMatch(/cannot be used: .*timed out/)
})
