/** Compiles the package to `dist/` and writes its package.json, ready for `npm pack` (`npm run dist`). */
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { OLDEST_NODE } from './src/node-version.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

rmSync(here('dist'), { recursive: true, force: true })
const tsc = here('../../node_modules/.bin/tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', here('tsconfig.dist.json')], {
  stdio: 'inherit',
})
if (status !== 0) process.exit(status ?? 1)

const source = JSON.parse(readFileSync(here('package.json'), 'utf8'))
const { name, version, description, license, type } = source
const { dependencies, peerDependencies, peerDependenciesMeta } = source
const built = ([subpath, path]: [string, unknown]) => {
  const file = String(path).replace('./src/', './').replace(/\.ts$/, '')
  return [subpath, { types: `${file}.d.ts`, default: `${file}.js` }]
}
writeFileSync(
  here('dist/package.json'),
  `${JSON.stringify(
    {
      name,
      version,
      description,
      license,
      type,
      engines: { node: `>=${OLDEST_NODE}` },
      exports: Object.fromEntries(Object.entries(source.exports).map(built)),
      sideEffects: ['./node-version.js'],
      dependencies,
      peerDependencies,
      peerDependenciesMeta,
    },
    null,
    2,
  )}\n`,
)

// Copies the pages and examples that the README links to, and adapts their links to the package.
const DOCS = ['migrating.md', 'servers.md', 'session-lifetimes.md']
const copyPage = (from: string, to: string) => {
  const text = readFileSync(here(from), 'utf8')
  const links = text
    .replaceAll('](../../', '](')
    .replaceAll('](../packages/session-store/', '](../')
  writeFileSync(here(`dist/${to}`), links)
}
mkdirSync(here('dist/docs'))
copyPage('README.md', 'README.md')
copyPage('REFERENCE.md', 'REFERENCE.md')
copyPage('../../CHANGELOG.md', 'CHANGELOG.md')
for (const page of DOCS) copyPage(`../../docs/${page}`, `docs/${page}`)
cpSync(here('examples'), here('dist/examples'), { recursive: true })
copyFileSync(here('../../LICENSE'), here('dist/LICENSE'))
