import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('..', import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const { scripts, optionalDependencies } = readJson(join(root, 'package.json')) as {
  scripts: Record<string, string>
  optionalDependencies: Record<string, string>
}

describe('package.json', () => {
  test('every script installs first, with the Node that runs npm, and then execs its program', () => {
    for (const [name, script] of Object.entries(scripts)) {
      const [first, ...programs] = script.split(' && ')
      expect({ name, first }).toEqual({
        name,
        first: `"$npm_node_execpath" .bootstrap/install.mjs${/^(start|load|doctor|redis)$/.test(name) ? ' --omit=dev' : ''}`,
      })
      // Without exec, a shell stays between npm and the program and forwards no signals.
      expect(programs.at(-1)).toMatch(/^exec /)
    }
  })

  test('pins the same Node as .node-version and .nvmrc on every platform', () => {
    for (const file of ['.node-version', '.nvmrc']) {
      const version = readFileSync(join(root, file), 'utf8').trim()
      expect(new Set(Object.values(optionalDependencies)), file).toEqual(new Set([version]))
    }
  })
})

describe('package-lock.json', () => {
  interface Entry {
    integrity?: string
    link?: boolean
    resolved?: string
    bin?: Record<string, string>
    os?: string
    cpu?: string
  }
  const { packages } = readJson(join(root, 'package-lock.json')) as {
    packages: Record<string, Entry>
  }

  test('is complete: npm ci accepts it', async () => {
    const npm = spawn('npm', ['ci', '--dry-run', '--offline', '--loglevel=error'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const errors = text(npm.stderr)
    const [code] = await once(npm, 'close')
    expect(await errors).not.toContain('Missing')
    expect(code).toBe(0)
  })

  test('pins every package by its hash and names no registry', () => {
    const installed = Object.entries(packages).filter(
      ([path, { link }]) => path.includes('node_modules/') && !link,
    )
    expect(installed.length).toBeGreaterThan(300)
    for (const [path, { integrity, resolved }] of installed) {
      expect({ path, integrity, resolved }).toEqual({
        path,
        integrity: expect.stringMatching(/^sha512-/),
        resolved: undefined,
      })
    }
  })

  test('has a Node for each supported platform, in the form that install.mjs expects', () => {
    const platforms = Object.keys(optionalDependencies).map((name) => {
      const { os, cpu, bin } = packages[`node_modules/${name}`] ?? {}
      expect(bin).toEqual({ node: 'bin/node' })
      return `${os}-${cpu}`
    })
    expect(platforms.sort()).toEqual(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'])
  })
})

test('Dependabot watches every Dockerfile', () => {
  const { updates } = parse(readFileSync(join(root, '.github/dependabot.yml'), 'utf8'))
  const { directories } = updates.find(
    (update: Record<string, string>) => update['package-ecosystem'] === 'docker',
  )
  const files = globSync('{apps/*,docker/*,load,templates/*}/Dockerfile', { cwd: root })
  expect(files.length).toBeGreaterThan(5)
  const isWatched = (file: string) =>
    directories.some((pattern: string) => matchesGlob(`/${dirname(file)}`, pattern))
  expect(files.filter((file) => !isWatched(file))).toEqual([])
})
