/**
 * Runs the tests of connect-redis, express-session, @fastify/session and better-auth on our stores:
 *
 *     npm run test:upstream-sessions -- [--from FOLDER] [names of packages]
 *
 * Tests that are not in the package come from its repository at a fixed commit, verified by SHA-256: with `--from` from
 * `FOLDER/<owner>/<repository>` (a clone at that commit), otherwise from GitHub. Fails if a test fails that is not listed
 * in `suites.ts`, or if the number of tests is another one.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { run } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePorts } from '@onetrip/stack/ports.ts'
import { buildRedis, startRedis } from '@onetrip/stack/start-redis.ts'
import { startVitest } from 'vitest/node'
import { type Suite, suites } from './suites.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const options = { from: { type: 'string' } } as const
const { values, positionals } = parseArgs({ options, allowPositionals: true })

type Result = { name: string; error: unknown }

/** Copies the package, if its tests load its files, then the tests, and replaces what is ours. */
async function prepare(suite: Suite, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  const source = join(root, 'node_modules', suite.name)
  if (suite.runner !== 'vitest') await cp(source, folder, { recursive: true })
  for (const [path, sha256] of Object.entries(suite.files)) {
    const content = await contentOf(suite, path)
    const found = createHash('sha256').update(content).digest('hex')
    if (found !== sha256) throw new Error(`${path} of ${suite.name} has the SHA-256 ${found}`)
    let text = content.toString()
    for (const { find, text: by } of suite.edits ?? []) {
      const edited = text.replace(find, by)
      if (edited === text) throw new Error(`${path} of ${suite.name} has no ${find}`)
      text = edited
    }
    await write(join(folder, path), text)
  }
  for (const [path, text] of Object.entries(suite.replaced)) await write(join(folder, path), text)
}

async function contentOf({ name, repository, commit }: Suite, path: string): Promise<Buffer> {
  if (repository === undefined) return await readFile(join(root, 'node_modules', name, path))
  if (values.from !== undefined) return await readFile(join(values.from, repository, path))
  const url = `https://raw.githubusercontent.com/${repository}/${commit}/${path}`
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url} answered ${response.status}; pass a clone with --from`)
  return Buffer.from(await response.arrayBuffer())
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

async function runNode({ runner, files }: Suite, folder: string): Promise<Result[]> {
  process.env.UPSTREAM_RUNNER = runner
  if (runner === 'mocha') {
    await mkdir(join(folder, 'test/fixtures'))
    execFileSync('sh', ['test/support/gencert.sh'], { cwd: folder, stdio: 'ignore' })
  }
  const isTest = (path: string) =>
    runner === 'mocha' ? dirname(path) === 'test' : path.endsWith('.test.js')
  const results: Result[] = []
  const events = run({
    cwd: folder,
    files: Object.keys(files)
      .filter(isTest)
      .map((path) => join(folder, path)),
    execArgv: ['--import', new URL('preload.ts', import.meta.url).href],
    forceExit: true,
  })
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details.type === 'suite') continue
    const error =
      'error' in data.details ? (data.details.error.cause ?? data.details.error) : undefined
    results.push({ name: data.name, error })
  }
  return results
}

async function runVitest(folder: string): Promise<Result[]> {
  const vitest = await startVitest('test', [], {
    root: folder,
    config: false,
    watch: false,
    include: ['index_test.ts', '**/*.test.ts'],
    reporters: [],
  })
  const modules = vitest.state.getTestModules()
  const results = modules.flatMap((module): Result[] => [
    ...module.errors().map((error) => ({ name: module.relativeModuleId, error })),
    ...[...module.children.allTests()].map((test) => {
      const { state, errors = [] } = test.result()
      return { name: test.name, error: state === 'passed' ? undefined : (errors[0] ?? state) }
    }),
  ])
  await vitest.close()
  return results
}

/** Returns whether only known tests failed. */
async function passes(suite: Suite): Promise<boolean> {
  const { workspace = 'express-session', name } = suite
  const folder = join(root, 'packages', workspace, '.onetrip/upstream', name)
  await prepare(suite, folder)
  const results = await (suite.runner === 'vitest' ? runVitest(folder) : runNode(suite, folder))
  const failed = results.filter(({ error }) => error !== undefined)
  const unknown = failed.filter(({ name }) => !Object.hasOwn(suite.known, name))
  console.log(`${name}: ${results.length - failed.length} of ${results.length} tests passed`)
  for (const [name, why] of Object.entries(suite.known)) {
    const isNeeded = failed.some((result) => result.name === name)
    console.log(`  ${isNeeded ? 'fails, as known' : 'passes, although listed'}: ${name} (${why})`)
  }
  for (const { name, error } of unknown) {
    console.log(`  FAILS: ${name}\n${(error as Error).stack ?? error}`)
  }
  if (results.length === suite.tests) return unknown.length === 0
  console.log(`  FAILS: expected ${suite.tests} tests`)
  return false
}

const chosen = suites.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const directory = await mkdtemp(join(tmpdir(), 'onetrip-upstream-'))
const [port = 0] = await freePorts(1)
process.env.UPSTREAM_REDIS_PORT = String(port)
await buildRedis('patched')
const redis = await startRedis({ port, directory })
try {
  for (const suite of chosen) if (!(await passes(suite))) process.exitCode = 1
} finally {
  await redis.stop()
  await rm(directory, { recursive: true, force: true })
}
