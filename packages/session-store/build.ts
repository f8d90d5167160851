/** Compiles the package to `dist/`, with a package.json of its own: what is published (`npm run pack`). */
import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const NODE = '>=22.12'

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
      engines: { node: NODE },
      exports: Object.fromEntries(Object.entries(source.exports).map(built)),
      sideEffects: false,
      dependencies,
      peerDependencies,
      peerDependenciesMeta,
    },
    null,
    2,
  )}\n`,
)
copyFileSync(here('README.md'), here('dist/README.md'))
copyFileSync(here('../../LICENSE'), here('dist/LICENSE'))
