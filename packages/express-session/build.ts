/** Compiles the package to `dist/` and writes its package.json, ready for `npm pack` (`npm run dist`). */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const run = (...args: string[]) => execFileSync(process.execPath, args, { stdio: 'inherit' })

rmSync(here('dist'), { recursive: true, force: true })
run(here('../session-store/build.ts')) // whose types this package uses
run(here('../../node_modules/.bin/tsc'), '-p', here('tsconfig.dist.json'))

const manifest = JSON.parse(readFileSync(here('package.json'), 'utf8'))
const { exports: sources, private: _, scripts: __, devDependencies: ___, ...published } = manifest
const built = ([subpath, path]: [string, unknown]) => {
  const file = String(path).replace('./src/', './').replace(/\.ts$/, '')
  return [subpath, { types: `${file}.d.ts`, default: `${file}.js` }]
}
const exports = Object.fromEntries(Object.entries(sources).map(built))
const { engines } = JSON.parse(readFileSync(here('../session-store/dist/package.json'), 'utf8'))
const text = JSON.stringify({ ...published, engines, exports, sideEffects: false }, null, 2)
writeFileSync(here('dist/package.json'), `${text}\n`)
cpSync(here('examples'), here('dist/examples'), { recursive: true })
copyFileSync(here('../../LICENSE'), here('dist/LICENSE'))
// Pages of the repository are not in the package.
const readme = readFileSync(here('README.md'), 'utf8')
writeFileSync(here('dist/README.md'), readme.replace(/\[([^\]]+)\]\(\.\.\/[^)]+\)/g, '$1'))
