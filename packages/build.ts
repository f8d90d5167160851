/**
 * Compiles a package to its folder `dist`, and adds its package.json, pages, examples and API reference, ready for
 * `npm pack`:
 *
 *     node packages/build.ts packages/session-store [other folder than dist]
 */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { reference } from './reference.ts'
import { OLDEST_NODE } from './session-store/src/node-version.ts'

const packages = import.meta.dirname
const root = dirname(packages)
const [, , folder = '', dist = join(folder, 'dist')] = process.argv.map((path) => resolve(path))
const inDist = (path: string) => join(dist, path)
/** A link to a file: its text, path and anchor. */
const LINK = /\[([^\]]+)\]\((?!#|\w+:)([^)#]+)(#[^)]*)?\)/g
const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

rmSync(dist, { recursive: true, force: true })
compile()
const {
  private: _,
  scripts,
  devDependencies,
  ...manifest
} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const source = json({
  ...manifest,
  ...origin(),
  exports: { ...manifest.exports, './package.json': './package.json' },
  engines: { node: `>=${OLDEST_NODE}` },
})
const published = source.replace(/"\.\/src\/(.+)\.ts"/g, '"./$1.js"')
writeFileSync(inDist('package.json'), published)
const { './package.json': __, ...entries } = JSON.parse(published).exports
writeFileSync(inDist('API.md'), reference(dist, manifest.name, entries))
if (existsSync(join(folder, 'examples'))) {
  cpSync(join(folder, 'examples'), inDist('examples'), { recursive: true })
}
copyFileSync(join(root, 'LICENSE'), inDist('LICENSE'))
copyPages()

/** What only a hosted runner knows: its repository, and keywords that the workflow sets. Elsewhere nothing. */
function origin(): Record<string, unknown> {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, KEYWORDS = '' } = process.env
  if (!GITHUB_REPOSITORY) return {}
  const home = `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`
  const directory = relative(root, folder)
  return {
    keywords: KEYWORDS.split(' '),
    repository: { type: 'git', url: `git+${home}.git`, directory },
    homepage: `${home}/tree/HEAD/${directory}#readme`,
    bugs: `${home}/issues`,
  }
}

/** Compiles the sources of other packages, too, because their types are needed, and drops the result. */
function compile(): void {
  const outDir = inDist('out')
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      target: 'es2024',
      lib: ['es2024'],
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      allowImportingTsExtensions: false,
      typeRoots: [join(root, 'node_modules/@types')],
      rootDir: packages,
      outDir,
    },
    include: [join(folder, 'src/**/*.ts')],
    exclude: [],
  }
  mkdirSync(dist, { recursive: true })
  writeFileSync(inDist('tsconfig.json'), json(config))
  const tsc = join(root, 'node_modules/.bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', inDist('tsconfig.json')], { stdio: 'inherit' })
  for (const part of readdirSync(join(outDir, basename(folder), 'src'))) {
    renameSync(join(outDir, basename(folder), 'src', part), inDist(part))
  }
  rmSync(outDir, { recursive: true })
  rmSync(inDist('tsconfig.json'))
}

/** Copies the README and the pages for users that it links to. A link to anything else becomes its text. */
function copyPages(): void {
  const pages = ['README.md', 'REFERENCE.md'].map((page) => join(folder, page)).filter(existsSync)
  const linked = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(LINK)].map(([, , to = '']) => resolve(page, '..', to)),
  )
  const shared = linked.filter((path) => [root, join(root, 'docs')].includes(dirname(path)))
  const places = new Map([
    ...pages.map((page) => [page, basename(page)] as const),
    ...shared.map((page) => [page, relative(root, page)] as const),
  ])
  for (const [page, place] of places) {
    const text = readFileSync(page, 'utf8').replace(LINK, (_, label, target, anchor = '') => {
      const path = resolve(dirname(page), target)
      const to = places.get(path) ?? relative(folder, path)
      if (to.startsWith('..')) return label
      return `[${label}](${relative(dirname(place), to)}${anchor})`
    })
    mkdirSync(dirname(inDist(place)), { recursive: true })
    writeFileSync(inDist(place), text)
  }
}
