/** Compiles the package to `dist/` and writes its package.json, ready for `npm pack` (`npm run dist`). */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { OLDEST_NODE } from '../session-store/src/node-version.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const tsc = (...args: string[]) =>
  execFileSync(process.execPath, [here('../../node_modules/.bin/tsc'), ...args], {
    stdio: 'inherit',
  })

rmSync(here('dist'), { recursive: true, force: true })
// The types of the session store, which this package uses.
const types = here('dist/session-store')
tsc('-p', here('../session-store/tsconfig.dist.json'), '--outDir', types)
tsc('-p', here('tsconfig.dist.json'))
rmSync(types, { recursive: true })

const manifest = JSON.parse(readFileSync(here('package.json'), 'utf8'))
const { exports: sources, private: _, scripts: __, devDependencies: ___, ...published } = manifest
const built = ([subpath, path]: [string, unknown]) => {
  const file = String(path).replace('./src/', './').replace(/\.ts$/, '')
  return [subpath, { types: `${file}.d.ts`, default: `${file}.js` }]
}
const exports = Object.fromEntries(Object.entries(sources).map(built))
const engines = { node: `>=${OLDEST_NODE}` }
const text = JSON.stringify({ ...published, engines, exports, sideEffects: false }, null, 2)
writeFileSync(here('dist/package.json'), `${text}\n`)
cpSync(here('examples'), here('dist/examples'), { recursive: true })
copyFileSync(here('../../LICENSE'), here('dist/LICENSE'))
// Pages of the repository are not in the package.
const readme = readFileSync(here('README.md'), 'utf8')
writeFileSync(here('dist/README.md'), readme.replace(/\[([^\]]+)\]\(\.\.\/[^)]+\)/g, '$1'))
