import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPacked, packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = join(root, 'packages/express-session')

/** Saves a session and loads it, with both stores. */
const PROGRAM = `
import { ExpressSessionStore } from '@onetrip/express-session'
import { FastifySessionStore } from '@onetrip/express-session/fastify'
import { SessionStore } from '@onetrip/session-store'
const url = process.env.REDIS_URL
const store = new SessionStore({ redis: url, tokens: { secrets: ['x'.repeat(32)] } })
await store.ready()
for (const Store of [ExpressSessionStore, FastifySessionStore]) {
  const sessions = new Store(store)
  await sessions.set(Store.name, { cookie: {}, theme: 'dark' })
  console.log(await sessions.get(Store.name))
}
await store.close()
`

test('the packed package works in an empty project', { timeout: 600_000 }, async () => {
  const redis = await redisForThisTest()
  const project = mkdtempSync(join(tmpdir(), 'onetrip-express-session-'))
  onTestFinished(() => rmSync(project, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: project, REDIS_URL: `unix://${redis.socket}` }
  const run = (command: string, args: string[], cwd = project) =>
    execFileSync(command, args, {
      cwd,
      encoding: 'utf8',
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })

  for (const name of ['session-store', 'express-session']) {
    installPacked(packedForThisTest(name), project, name)
  }
  const link = (...names: string[]) => {
    for (const name of names) {
      const target = join(project, 'node_modules', name)
      mkdirSync(dirname(target), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), target)
    }
  }
  link('ioredis', 'express-session', 'express', 'fastify', '@fastify/session', '@fastify/cookie')
  link('typescript', '@types/node', '@types/express', '@types/express-session')
  link('cookie', 'fastify-plugin', 'cluster-key-slot')

  writeFileSync(join(project, 'program.mjs'), PROGRAM)
  const saved = "{ cookie: {}, theme: 'dark' }\n"
  expect(run(process.execPath, ['program.mjs'])).toBe(saved + saved)

  const programsIn = (page: string) =>
    [...readFileSync(page, 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text)
  const shown = [`${source}/README.md`, `${root}/docs/migrating.md`].flatMap(programsIn)
  expect(shown).toHaveLength(3)
  const files = shown.map((text, index) => {
    writeFileSync(join(project, `shown-${index}.mts`), text)
    return `shown-${index}.mts`
  })
  for (const name of ['express', 'fastify']) {
    const program = readFileSync(join(source, 'examples', `${name}.ts`), 'utf8')
    writeFileSync(join(project, `${name}.mts`), program)
  }
  const options = ['--strict', '--noEmit', '--types', 'node', '--module', 'nodenext']
  for (const file of [...files, 'express.mts', 'fastify.mts']) {
    run(process.execPath, ['node_modules/typescript/bin/tsc', ...options, file])
  }
})
