import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { commandOf, raceLimits } from '../apps/demo/src/service/race.ts'
import { program as redis } from '../apps/server-build/src/cli.ts'
import { completed, loadProgram } from '../load/src/cli.ts'
import { renamed } from '../load/src/experiments/index.ts'
import { publishedRuns } from '../load/src/publish/runs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

const globs = ['*.md', 'docs/**/*.md', '{apps,packages,examples}/*/*.md', 'load/README.md']
const documents = globSync(globs, { cwd: root }).toSorted()

const withoutCode = (text: string) => text.replaceAll(/^```.*?^```/gms, '')
const matches = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map(([, match]) => match ?? '')),
]

/** The anchors that GitHub gives the headings of a document. */
function anchorsOf(path: string): string[] {
  const headings = matches(withoutCode(readFileSync(path, 'utf8')), /^#+ +(.+)$/gm)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

test('packages, templates, the ranges between them, and the CHANGELOG have one version', () => {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const { version, workspaces } = JSON.parse(read('package.json'))
  const manifests = [...workspaces, 'templates/*'].map((folder) => `${folder}/package.json`)
  for (const path of globSync(manifests, { cwd: root })) {
    const text = read(path)
    expect(JSON.parse(text).version, path).toBe(version)
    for (const range of matches(text, /"@onetrip\/[\w-]+": "(.+)"/g)) {
      expect(['*', `^${version}`], path).toContain(range)
    }
  }
  expect(matches(read('CHANGELOG.md'), /^## (.+?) \(\d{4}-\d\d-\d\d\)$/gm)[0]).toBe(version)
  expect(read('packages/session-store/README.md')).toContain(`session-store-${version}.tgz`)
})

describe.each(documents)('%s', (name) => {
  const path = join(root, name)
  const text = readFileSync(path, 'utf8')

  test('names npm scripts that exist', () => {
    const named = matches(text, /npm run ([\w:.-]+)/g).map((script) => script.replace(/\.+$/, ''))
    const own = join(dirname(path), 'package.json')
    const known = existsSync(own) ? JSON.parse(readFileSync(own, 'utf8')).scripts : {}
    expect(named.filter((script) => !(script in { ...scripts, ...known }))).toEqual([])
  })

  test('names paths that exist', () => {
    const named = [
      ...matches(text, /`((?:apps|packages|load|docs|docker)\/[\w./-]*)`/g),
      ...matches(text, /\bnode ((?:apps|packages|load|examples\/\w+)\/[\w./-]+)/g),
    ]
    expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([])
  })

  test('links to files and headings that exist', () => {
    const links = matches(withoutCode(text), /\]\((?!https?:|mailto:)([^)\s]+)\)/g)
    const broken = links.filter((link) => {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      if (!existsSync(target)) return true
      return anchor !== undefined && !anchorsOf(target).includes(anchor)
    })
    expect(broken).toEqual([])
  })
})

test('docs has at most 16 pages for users, and an index', () => {
  expect(
    documents.filter((name) => /^docs\/(?!README)[^/]+\.md$/.test(name)).length,
  ).toBeLessThanOrEqual(16)
})

test.for(['docs', 'docs/measurements'])('the index of %s has every page', (folder) => {
  const index = readFileSync(join(root, folder, 'README.md'), 'utf8')
  const pages = documents.filter((name) => dirname(name) === folder && !name.endsWith('README.md'))
  expect(pages.length).toBeGreaterThan(3)
  expect(pages.filter((name) => !index.includes(`(${relative(folder, name)})`))).toEqual([])
})

test.for(globSync('docs/images/*.svg', { cwd: root }))('%s has a place for everything', (name) => {
  expect(readFileSync(join(root, name), 'utf8')).not.toMatch(/NaN|Infinity|undefined/)
})

/** Without the tables and lists that `npm run load -- document` fills in. */
const handWritten = (text: string) => text.replaceAll(/^<!-- .* -->\n+(?:(?:\||- ).*\n)*/gm, '')

test.each([
  ['README.md', 130],
  ...documents.filter((name) => name.startsWith('docs/')).map((name) => [name, 250] as const),
] as const)('%s has at most %i lines', (name, most) => {
  const text = readFileSync(join(root, name), 'utf8').trimEnd()
  const lines = (name === 'README.md' ? text : handWritten(text)).split('\n')
  expect(lines.length).toBeLessThanOrEqual(most)
})

test('README.md has rows of the comparison of session stores as they were measured', () => {
  const rowsOf = (name: string) => {
    const lines = readFileSync(join(root, name), 'utf8').split('<!-- conformance -->')[1] ?? ''
    const table = /^(?:\|.*\n)+/m.exec(lines)?.[0] ?? ''
    const cells = [...table.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) => row.split(/ +\| +/))
    const [head = [], , ...rows] = cells
    return rows.map((row) => new Map(row.map((cell, index) => [head[index]?.trim(), cell.trim()])))
  }
  const key = 'what should hold'
  const measured = rowsOf('docs/measurements/session-stores.md')
  const shown = rowsOf('README.md')
  expect(shown.length).toBeGreaterThan(4)
  for (const row of shown) {
    const found = measured.find((one) => one.get(key) === row.get(key))
    for (const [name, cell] of row) expect(found?.get(name), `${row.get(key)}: ${name}`).toBe(cell)
  }
})

test('containers.md names settings that the API has for Kubernetes', () => {
  const read = (name: string) => readFileSync(join(root, name), 'utf8')
  const settings = matches(read('apps/api/.env.example'), /^(\w+)=/gm)
  const named = matches(read('docs/containers.md'), /\bname: ([A-Z_]+)/g)
  expect(named).toContain('REDIS_URL')
  expect(named.filter((name) => !settings.includes(name))).toEqual([])
})

test('documented command lines are valid', () => {
  const load = loadProgram({ commandLine: '', interrupt: new AbortController().signal })
  const silence = (command: ReturnType<typeof loadProgram>) => {
    command.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} })
    command.commands.forEach(silence)
    if (command.commands.length === 0) command.action(() => {})
  }
  for (const program of [load, redis]) silence(program)
  const errorOf = (name: string, line: string) => {
    const args = line.replaceAll("'", '').split(' ')
    try {
      // Results of an earlier commit have its names, which a call answers with today's.
      if (name === 'load') load.parse(completed(renamed(args) ?? args), { from: 'user' })
      else redis.parse(args, { from: 'user' })
      return []
    } catch (error) {
      const { code, message } = error as Error & { code?: string }
      return code === 'commander.helpDisplayed' ? [] : `${name} -- ${line}: ${message}`
    }
  }
  const sources = globSync('{apps,packages,load}/**/*.{ts,html}', {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist/**', '**/test/**'],
  })
  const races = raceLimits.distancesMs.map((distanceMs) =>
    commandOf({ lanes: raceLimits.strategies, connections: 1, distanceMs }),
  )
  const texts = [...documents, ...sources]
    .filter((name) => name !== 'CHANGELOG.md')
    .map((name) => readFileSync(join(root, name), 'utf8').replaceAll(/\\\n */g, ''))
  const published = publishedRuns.map(
    ({ args }) => `npm run load -- ${args.replace('p99<10', "'p99<10'")}`,
  )
  const lines = [...texts, ...races, ...published]
    .flatMap((text) => [
      ...text.matchAll(
        /(?:npm run (load|redis) --|node load\/src\/cli\.ts) ([a-z-][^\n`#|$)<\\]*)/g,
      ),
    ])
    .map(([, name = 'load', rest = '']) => {
      // A sentence, an explanation after several spaces, or arguments for redis-server may follow.
      const [line = ''] = rest.split(/ {2}|[.,;:](?: |$)| -- /)
      return { name, line: line.trim() }
    })
    .filter(({ line }) => line.split("'").length % 2 === 1) // not the end of a string in a source
  expect(lines.length).toBeGreaterThan(100)
  expect(lines.flatMap(({ name, line }) => errorOf(name, line))).toEqual([])
})
