import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { installPacked } from '@onetrip/stack/testing/packed.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = dirname(import.meta.dirname)
const names = globSync('*/package.json', { cwd: import.meta.dirname })
  .map(dirname)
  .toSorted()
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const run = (...args: string[]) =>
  execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' })

let project = ''
let output = ''

// Runs the command of the workflow, and installs the packages in a project. It is inside the repository, so that other
// packages are found there.
beforeAll(() => {
  mkdirSync(join(root, '.onetrip'), { recursive: true })
  project = mkdtempSync(join(root, '.onetrip/project-'))
  const { on, jobs } = parse(read('.github/workflows/release.yml'))
  expect(on.push).toEqual({ tags: ['v*'] })
  expect(jobs.npm).toMatchObject({ needs: 'checks', permissions: { 'id-token': 'write' } })
  const step = jobs.npm.steps.at(-1)
  expect(step.env.PUBLISH).toContain("'push' && '--provenance' || '--dry-run'")
  const { version } = JSON.parse(read('packages/session-store/package.json'))
  const env = {
    ...process.env,
    ...step.env,
    PUBLISH: '--dry-run',
    GITHUB_REF_TYPE: 'tag',
    GITHUB_REF_NAME: `v${version}`,
    GITHUB_REPOSITORY: 'an-owner/a-repository',
    GITHUB_SERVER_URL: 'https://git.example',
    RUNNER_TEMP: project,
    npm_config_offline: 'true',
  }
  const shell = ['-euc', `${step.run} 2>&1`]
  output = execFileSync('bash', shell, { cwd: root, env, encoding: 'utf8' })
  for (const name of names) installPacked(tarballOf(name), project, name)
}, 600_000)

afterAll(() => rmSync(project, { recursive: true, force: true }))

const installedAt = (name: string) => join(project, 'node_modules/@onetrip', name)
const manifestOf = (name: string) =>
  JSON.parse(readFileSync(join(installedAt(name), 'package.json'), 'utf8'))
function tarballOf(name: string): string {
  const [tarball = ''] = globSync(`packages/onetrip-${name}-[0-9]*.tgz`, { cwd: project })
  return join(project, tarball)
}

test.each(names)('the release has the whole package %s', (name) => {
  expect(output).toMatch(new RegExp(`^\\+ @onetrip/${name}@\\d`, 'm'))
  const bin = join(root, 'node_modules/.bin')
  run(join(bin, 'publint'), '--strict', tarballOf(name))
  const attw = ['--profile', 'esm-only', '--quiet', '--exclude-entrypoints', 'package.json']
  run(join(bin, 'attw'), tarballOf(name), ...attw)

  const directory = `packages/${name}`
  const manifest = manifestOf(name)
  expect(manifest).not.toHaveProperty('private')
  expect(manifest).toMatchObject({
    keywords: expect.arrayContaining(['redis', 'session']),
    repository: { url: 'git+https://git.example/an-owner/a-repository.git', directory },
    homepage: `https://git.example/an-owner/a-repository/tree/HEAD/${directory}#readme`,
    bugs: 'https://git.example/an-owner/a-repository/issues',
  })
  createRequire(join(project, 'program.js')).resolve(`@onetrip/${name}/package.json`)

  const files = globSync('**', { cwd: installedAt(name) })
  expect(files).toEqual(expect.arrayContaining(['README.md', 'LICENSE']))
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
  expect(sources.filter((file) => !file.startsWith('examples/'))).toEqual([])
  const links = files
    .filter((file) => file.endsWith('.md'))
    .flatMap((page) =>
      [
        ...readFileSync(join(installedAt(name), page), 'utf8').matchAll(/\]\((?!#|\w+:)([^)#]+)/g),
      ].map(([, target = '']) => join(installedAt(name), dirname(page), target)),
    )
  expect(links.filter((path) => !existsSync(path))).toEqual([])
})

const entriesOf = (name: string) =>
  Object.keys(manifestOf(name).exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => join('@onetrip', name, entry))
    .toSorted()

test('API.md has everything that an entry point exports, with docstrings', () => {
  for (const name of names) {
    const page = readFileSync(join(installedAt(name), 'API.md'), 'utf8')
    // Types may have them at their members only.
    const undocumented = page.matchAll(/^### (\w+)\n\n```ts\nexport declare/gm)
    expect([...undocumented].map(([, exported]) => exported)).toEqual([])
    for (const entry of entriesOf(name)) {
      const exported = JSON.parse(
        run('-e', `console.log(JSON.stringify(Object.keys(await import('${entry}'))))`),
      )
      const [, section = ''] = page.split(`## ${entry}\n`)
      const titles = [...(section.split(/^## /m)[0]?.matchAll(/^### (.+)$/gm) ?? [])].map(
        ([, t]) => t,
      )
      expect(titles).toEqual(expect.arrayContaining(exported))
    }
  }
})

/** Prints which files an import loads. */
const LOADED = `
import { registerHooks } from 'node:module'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
const files = []
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) files.push(fileURLToPath(url))
    return next(url, context)
  },
})
await import(process.argv[1])
console.log(JSON.stringify(files.map((path) => ({ path, bytes: statSync(path).size }))))
`

test('REFERENCE.md says how much each entry point loads', () => {
  const measured = names.flatMap(entriesOf).map((entry) => {
    const loaded: { path: string; bytes: number }[] = JSON.parse(run('-e', LOADED, entry))
    const [, name = ''] = entry.split('/')
    const own = loaded.filter(({ path }) => path.startsWith(`${installedAt(name)}/`))
    const figures = [own, loaded].flatMap((files) => [
      files.length,
      Math.round(files.reduce((sum, { bytes }) => sum + bytes, 0) / 1000),
    ])
    return { entry, figures }
  })
  const rows = measured.map(({ entry, figures }) => `| \`${entry}\` | ${figures.join(' | ')} |`)
  const page = read('packages/session-store/REFERENCE.md')
  const stated = [...page.matchAll(/^\| `(@onetrip.+?)` +\|([\d| ]+)\|$/gm)].map(
    ([, entry, figures = '']) => ({ entry, figures: figures.split('|').map(Number) }),
  )
  // A tenth may change before the table must. The error shows the new one.
  const isNear = (a: number, b: number) => Math.abs(a - b) <= Math.max(2, 0.1 * b)
  const near = measured.map(({ entry, figures }) => {
    const row = stated.find((other) => other.entry === entry)
    const agrees = figures.every((figure, index) => isNear(row?.figures[index] ?? 0, figure))
    return { entry, figures: agrees ? row?.figures : figures }
  })
  expect(stated, rows.join('\n')).toEqual(near)
})
