import { execFileSync } from 'node:child_process'
import { cpSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { unixUrl } from '@onetrip/stack/address.ts'
import { startProgram } from '@onetrip/stack/program.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'

const templates = globSync('*/package.json', { cwd: import.meta.dirname }).map(dirname)

test.each(templates)('the template %s works with the packed packages', async (name) => {
  const project = await temporaryFolder()
  cpSync(join(import.meta.dirname, name), project, {
    recursive: true,
    filter: (path) => basename(path) !== 'node_modules',
  })
  const { socket } = await redisForThisTest()
  const env = cleanEnv(project, {
    PORT: '0',
    REDIS_URL: unixUrl(socket),
    SESSION_SECRET: 'x'.repeat(32),
    ADA_PASSWORD: 'lovelace',
  })
  const npm = (...args: string[]) =>
    execFileSync('npm', args, { cwd: project, env, encoding: 'utf8' })
  const tarballs = ['session-store', 'testing'].map(packedForThisTest)
  npm('install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', ...tarballs)
  expect(npm('test')).toContain('pass 1')

  const port = Promise.withResolvers<string>()
  const server = await startProgram({
    name: `the template ${name}`,
    command: process.execPath,
    args: ['src/server.ts'],
    cwd: project,
    env,
    ready: /Listening on/,
    onLine: (line) => {
      const [, found] = /(?::|port: )(\d+)/.exec(line) ?? []
      if (found) port.resolve(found)
    },
  })
  onTestFinished(async () => void (await server.stop()))
  const url = `http://127.0.0.1:${await port.promise}`
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  const login = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'ada', password: 'lovelace' }),
  })
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
  expect(await (await fetch(`${url}/me`, { headers: { cookie } })).json()).toMatchObject({
    user: 'ada',
  })
  expect(await server.stop()).toEqual({ code: 0, signal: null })
})
