import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// Checks that a unit imports only units of inner rings: a page to copy, a package that one reads in an evening, packages
// that one takes if needed, applications, load tests. Type imports count, too, because a reader has to follow them. Lint
// refuses imports that form a cycle.

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')

/** The entries of a package: its specifiers, and their files. */
function entriesOf(name: string): [specifier: string, file: string][] {
  const { exports = {} } = JSON.parse(read(`packages/${name}/package.json`))
  return Object.entries<string>(exports).map(([subpath, file]) => [
    join('@onetrip', name, subpath),
    join('packages', name, file),
  ])
}

const packages = globSync('packages/*/package.json', { cwd: root }).map((file) =>
  basename(dirname(file)),
)
const entries = new Map(packages.flatMap(entriesOf))

/** Each unit imports only what stands above it. */
const rings: readonly (readonly string[])[] = [
  ['examples/pattern/', 'examples/applications/'],
  ['packages/session-store/'],
  packages.filter((name) => name !== 'session-store').map((name) => `packages/${name}/`),
  ['apps/api/src/strategies/', 'apps/server-build/'],
  ['apps/stack/'],
  ['apps/api/'],
  ['examples/applications/own-login/', 'apps/demo/'],
  ['load/', 'docker/'],
]
const units = rings.flat()

/** Of two folders that match, the inner one counts. */
const unitOf = (file: string) =>
  units.filter((unit) => file.startsWith(unit)).sort((a, b) => b.length - a.length)[0]
const ringOf = (file: string) => rings.findIndex((ring) => ring.includes(unitOf(file) ?? ''))

/** Parts of the store, and the parts that they do not import. */
const partsOfStore: Readonly<Record<string, RegExp>> = {
  '': /^web\//,
  'data/': /^(retention|sessions|tokens|views|web)\//,
  'views/': /^(data|retention|tokens|web)\//,
  'sessions/': /^(retention|web)\//,
  'redis/': /^(data|retention|sessions|tokens|views|web)\/|^(keys|options|readiness|store)\.ts/,
  'tokens/': /^(data|redis|retention|sessions|views|web)\//,
}

/** A package is imported by its entries only; of an application, any file. */
function mayImport(from: string, to: string): boolean {
  if (unitOf(from) !== unitOf(to)) {
    const isEntry = !to.startsWith('packages/') || [...entries.values()].includes(to)
    return isEntry && !isTest(to) && ringOf(to) < ringOf(from)
  }
  const store = 'packages/session-store/src/'
  if (!from.startsWith(store) || [...entries.values()].includes(from)) return !isTest(to)
  const [file, target] = [from.slice(store.length), to.slice(store.length)]
  const part = `${/^\w+\//.exec(file) ?? ''}`
  return part === 'web/' || !(partsOfStore[part] ?? partsOfStore[''])?.test(target)
}

/** Of the repository, which pack and publish. */
const isTool = (file: string) => /^packages\/[^/]+\.ts$/.test(file)

const isTest = (file: string) =>
  isTool(file) || /\/(test|faults)\/|\/testing\/|test-servers|^docker\//.test(file)

/** Tests also use the helpers of other tests, start programs with apps/stack, and combine packages. */
const mayTest = (from: string, to: string) =>
  isTool(from) ||
  isTest(to) ||
  unitOf(from) === unitOf(to) ||
  unitOf(to) === 'apps/stack/' ||
  (ringOf(to) <= ringOf(from) && [...entries.values(), to].includes(to))

const files = globSync('{apps,packages,load,docker,examples}/**/*.ts', {
  cwd: root,
  exclude: ['**/node_modules/**', '**/dist/**'],
}).sort()
const imports = new Map(files.map((file) => [file, importsOf(file)]))

/** The files of the repository that a file imports or exports from. */
function importsOf(file: string): string[] {
  const text = read(file)
  const { module } = parseSync(file, text)
  const specifiers = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.map(({ moduleRequest }) => moduleRequest?.value ?? ''),
    ),
    ...module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
      text.slice(start + 1, end - 1),
    ),
  ]
  return [...new Set(specifiers.flatMap((specifier) => resolve(file, specifier)))]
}

function resolve(file: string, specifier: string): string[] {
  if (specifier.startsWith('.')) return [join(dirname(file), specifier)]
  const [, name, path] = /^@onetrip\/([^/]+)\/?(.*)$/.exec(specifier) ?? []
  if (name !== undefined && packages.includes(name)) {
    return [entries.get(specifier) ?? `unknown entry ${specifier}`]
  }
  if (name === 'api') return [path ? `apps/api/src/${path}/index.ts` : 'apps/api/src/index.ts']
  if (name === 'stack') return [`apps/stack/src/${path}`]
  return name === undefined ? [] : [specifier]
}

test('every import of a file of the repository is found', () => {
  const all = [...imports.values()].flat()
  expect(all.length).toBeGreaterThan(files.length)
  expect(all.filter((file) => file.endsWith('.ts') && !imports.has(file))).toEqual([])
})

test('every unit imports only units of inner rings', () => {
  const breaches = [...imports].flatMap(([from, all]) =>
    all
      .filter((to) => !(isTest(from) ? mayTest(from, to) : mayImport(from, to)))
      .map((to) => `${from} -> ${to}`),
  )
  expect(breaches.sort()).toEqual([])
})

test('the store knows no concept of an outer ring', () => {
  const words = /topology|partition|slot|cluster|external|tombstone/i
  const sources = files.filter((file) => file.startsWith('packages/session-store/src/'))
  expect(sources.length).toBeGreaterThan(40)
  expect(sources.filter((file) => words.test(file) || words.test(read(file)))).toEqual([])
})

/** All files that a file imports, directly or indirectly. */
function reachableFrom(file: string): Set<string> {
  const reached = new Set<string>()
  const visit = (from: string) => {
    for (const to of imports.get(from) ?? []) {
      if (reached.has(to)) continue
      reached.add(to)
      visit(to)
    }
  }
  visit(file)
  return reached
}

const services: object[] = ['docker-compose.yml', 'docker/password.yml'].flatMap((file) =>
  Object.values(parse(read(file), { merge: true }).services),
)

test.each(globSync('{apps/*,load}/Dockerfile', { cwd: root }))(
  'the image of %s has every file that its programs import',
  (dockerfile) => {
    const commands = services.map((service) => JSON.stringify(service))
    const text = [read(dockerfile), ...commands.filter((command) => command.includes(dockerfile))]
    const programs = text.join('\n').match(/\b(apps|load)\/[\w/-]+\.ts\b/g) ?? []
    const copies = text[0]?.matchAll(/^COPY ((\S+\/)\S+) (?:\1|\2)$/gm) ?? []
    const copied = Array.from(copies, ([, path]) => path)
    const needed = programs.flatMap((program) => [program, ...reachableFrom(program)])
    expect(needed.length).toBeGreaterThan(1)
    expect(
      needed.filter((file) => !copied.some((path) => `${file}/`.startsWith(`${path}/`))),
    ).toEqual([])
  },
)
