import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// Checks which layer imports which. Type imports count, too, because a reader has to follow them. Lint refuses
// imports that form a cycle.

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
const outer = packages.filter((name) => name !== 'session-store')
const entries = new Map(packages.flatMap(entriesOf))

type Layer = [layer: string, folder: string, ...mayImport: string[]]

/** Layer, its folder (the first that matches counts), and the layers that it may import. */
const layers: readonly Layer[] = [
  ...entriesOf('session-store').map(
    ([, file]): Layer => ['store entry', file, 'store core', 'store'],
  ),
  ...['cluster', 'web'].map(
    (folder): Layer => ['store', `packages/session-store/src/${folder}/`, 'store core'],
  ),
  ['store core', 'packages/session-store/src/'],
  [
    'store tests',
    'packages/session-store/',
    'store entry',
    'store core',
    'store',
    'stack',
    'fixtures',
  ],
  // The tests of the store also run on the memory, with its fixtures.
  [
    'testing tests',
    'packages/testing/test/',
    ...['testing', 'store entry', 'store core', 'store tests', 'fixtures'],
  ],
  ...outer.flatMap((name): Layer[] => [
    [name, `packages/${name}/src/`, 'store entry'],
    [`${name} tests`, `packages/${name}/`, name, 'store entry', 'stack', 'fixtures'],
  ]),
  ['packing', 'packages/', 'store core', 'fixtures'],
  ['api variants', 'apps/api/src/variants/', 'store entry'],
  ['api', 'apps/api/src/', 'store entry', 'otel', 'api variants'],
  [
    'api tests',
    'apps/api/',
    'api',
    'api variants',
    'store entry',
    'store tests',
    'stack',
    'fixtures',
  ],
  ['server-build', 'apps/server-build/src/'],
  ['server-build tests', 'apps/server-build/', 'server-build', 'stack', 'fixtures'],
  ['fixtures', 'apps/stack/src/testing/', 'stack', 'store entry', 'packing'],
  ['stack', 'apps/stack/src/', 'store entry'],
  ['stack tests', 'apps/stack/', 'stack', 'fixtures', 'store entry'],
  ['demo', 'apps/demo/src/', 'stack', 'api', 'api variants', 'store entry'],
  // They start the demo like the API and the stack.
  [
    'demo tests',
    'apps/demo/',
    'demo',
    'stack',
    'stack tests',
    'fixtures',
    'api',
    'api variants',
    'api tests',
    'store entry',
  ],
  [
    'compared strategies',
    'load/src/compared-strategies.ts',
    'api variants',
    'store entry',
    'store core',
  ],
  ['load', 'load/src/', 'stack', 'api variants', 'store entry', 'compared strategies', 'pattern'],
  // Other Redis clients, which use the application and parts of the store.
  [
    'contenders',
    'load/contenders/',
    'load',
    'stack',
    'compared strategies',
    'node-redis',
    'store entry',
    'store core',
    'api',
  ],
  ['clients', 'load/clients/', 'load', 'compared strategies', 'store entry'],
  [
    'load tests',
    'load/',
    'doctor',
    'doctor tests',
    'load',
    'contenders',
    'compared strategies',
    'stack',
    'fixtures',
    'store entry',
  ],
  ['container tests', 'docker/', 'stack', 'fixtures', 'api tests'],
  ['pattern tests', 'examples/pattern/test/', 'pattern', 'store tests', 'fixtures'],
  ['pattern', 'examples/pattern/'],
  [
    'own-login tests',
    'examples/applications/own-login/test/',
    'own-login',
    'api tests',
    'fixtures',
  ],
  ['own-login', 'examples/applications/own-login/', 'api'],
  ['application tests', 'examples/applications/test/', 'applications', 'fixtures'],
  ['applications', 'examples/applications/'],
]

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

const layerOf = (file: string) => layers.find(([, folder]) => file.startsWith(folder))

function mayImport(from: string, to: string): boolean {
  const [layer, , ...allowed] = layerOf(from) ?? []
  const [target] = layerOf(to) ?? []
  return layer === target || (target !== undefined && allowed.includes(target))
}

test('every import of a file of the repository is found', () => {
  const all = [...imports.values()].flat()
  expect(all.length).toBeGreaterThan(files.length)
  expect(all.filter((file) => file.endsWith('.ts') && !imports.has(file))).toEqual([])
})

test('every layer imports only the layers that it may', () => {
  const breaches = [...imports].flatMap(([from, all]) =>
    all
      .filter((to) => !mayImport(from, to))
      .map((to) => `${from} (${layerOf(from)?.[0]}) -> ${to} (${layerOf(to)?.[0]})`),
  )
  expect(breaches.sort()).toEqual([])
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
    const copied = Array.from(text[0]?.matchAll(/^COPY (\S+\/\S+) \1$/gm) ?? [], ([, path]) => path)
    const needed = programs.flatMap((program) => [program, ...reachableFrom(program)])
    expect(needed.length).toBeGreaterThan(1)
    expect(needed.filter((file) => !copied.some((path) => file.startsWith(`${path}/`)))).toEqual([])
  },
)
