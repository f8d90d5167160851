import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  environmentOf,
  isAlive,
  lockOf,
  makeRepository,
  middleOfInstallation,
  Npm,
  PackageServer,
  start,
} from './test-repository.ts'

// A test runs npm up to six times.
vi.setConfig({ testTimeout: 120_000 })

const server = new PackageServer()

describe('npm start', () => {
  test('installs once, then runs the program on the pinned Node with its arguments', async () => {
    const folder = makeRepository(server)
    const first = await start(folder, ['3', 'a b', '$HOME']).end()
    expect(first.output).toContain('Installing dependencies (once)')
    expect(first.output).toContain('running yes 3|a b|$HOME\n')
    expect(first.code).toBe(3)
    const second = await start(folder).end()
    expect(second).toMatchObject({ code: 0, output: expect.not.stringContaining('Installing') })
    expect(fs.existsSync(lockOf(folder))).toBe(false)
  })

  test('installs what it needs, even if .npmrc, NODE_ENV or npm settings omit packages', async () => {
    const folder = makeRepository(server)
    fs.appendFileSync(join(folder, '.npmrc'), 'omit[]=dev\nomit[]=optional\nbin-links=false\n')
    const narrowed = { NODE_ENV: 'production', npm_config_dry_run: 'true', npm_config_omit: 'dev' }
    const { code, output } = await start(folder, [], narrowed).end()
    expect(output).toContain('running yes')
    expect(code).toBe(0)
    expect(fs.existsSync(join(folder, 'node_modules', '.bin', 'tool'))).toBe(true)
  })

  test('leaves packages for development to other scripts, which add only those', async () => {
    const folder = makeRepository(server)
    await start(folder).end()
    const packages = join(folder, 'node_modules')
    expect(fs.existsSync(join(packages, 'checker'))).toBe(false)
    const { ino } = fs.statSync(join(packages, 'tool'))
    const lock = fs.readFileSync(join(folder, 'package-lock.json'), 'utf8')
    server.hold = 'checker'
    const running = new Npm(folder, ['test'])
    await expect.poll(() => server.isHolding).toBe(true)
    expect(fs.statSync(join(packages, 'tool')).ino).toBe(ino) // for a program that is running
    server.release()
    const { code, output } = await running.end()
    expect(output).toContain('checked')
    expect(code).toBe(0)
    expect(fs.statSync(join(packages, 'tool')).ino).toBe(ino)
    expect(fs.readFileSync(join(folder, 'package-lock.json'), 'utf8')).toBe(lock)
    for (const script of ['start', 'test']) {
      const again = await new Npm(folder, [script]).end()
      expect(again).toMatchObject({ code: 0, output: expect.not.stringContaining('Installing') })
    }
  })

  test('installs again if the lock file or the installed packages changed', async () => {
    const folder = makeRepository(server)
    const list = join(folder, 'node_modules', '.package-lock.json')
    const damages: Record<string, () => unknown> = {
      'nothing is installed': () => {},
      'package-lock.json wants another version': () =>
        fs.writeFileSync(list, fs.readFileSync(list, 'utf8').replaceAll('"1.0.0"', '"0.9.0"')),
      'a package was deleted': () =>
        fs.rmSync(join(folder, 'node_modules', 'tool'), { recursive: true }),
      'a manual npm ci omitted the pinned Node': () =>
        new Npm(folder, ['ci', '--omit=optional']).end(),
      'npm was killed while it wrote its list': () => fs.truncateSync(list, 100),
    }
    for (const [reason, damage] of Object.entries(damages)) {
      await damage()
      const { code, output } = await start(folder).end()
      expect(output, reason).toContain('Installing')
      expect(output, reason).toContain('running yes')
      expect(code, reason).toBe(0)
    }
    expect(await new Npm(folder, ['ci']).end()).toMatchObject({ code: 0 }) // manually
    expect((await start(folder).end()).output).not.toContain('Installing')
  })

  test('does not run the program if the installation fails; a retry works', async () => {
    const folder = makeRepository(server)
    server.missing = 'tool'
    const { code, output } = await start(folder).end()
    expect(output).toContain('Could not install the dependencies: npm ci ended with 1')
    expect(output).not.toContain('running')
    expect(code).toBe(1)
    server.missing = ''
    expect(await start(folder).end()).toMatchObject({ code: 0 })
  })

  test('reports that it cannot write into the repository', async () => {
    const folder = makeRepository(server)
    fs.writeFileSync(join(folder, '.onetrip'), '') // Even root cannot create a folder there.
    const { code, output } = await start(folder).end()
    expect(output).toContain(`Cannot install the dependencies into ${folder}: Error: E`)
    expect(output).not.toContain('running')
    expect(code).toBe(1)
  })
})

describe('concurrent installations', () => {
  test('the second waits for the first, and does not install again', async () => {
    const folder = makeRepository(server)
    server.hold = 'tool'
    const first = start(folder)
    await middleOfInstallation(server, folder)
    const second = start(folder)
    await expect.poll(() => second.output).toContain('Waiting for another installation')
    server.release()
    expect(await first.end()).toMatchObject({ code: 0 })
    const { code, output } = await second.end()
    expect(output).not.toContain('Installing')
    expect(code).toBe(0)
  })

  test('exactly one of several takes over the lock of an exited process', async () => {
    const folder = makeRepository(server)
    const gone = spawn('true')
    await once(gone, 'close')
    fs.mkdirSync(join(folder, '.onetrip'))
    fs.writeFileSync(lockOf(folder), `${gone.pid}`)
    const ends = await Promise.all([1, 2, 3].map(() => start(folder).end()))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(ends.filter(({ output }) => output.includes('Installing'))).toHaveLength(1)
  })

  test('a lock that was not touched for a minute is taken over, even if its id is in use', async () => {
    const folder = makeRepository(server)
    fs.mkdirSync(join(folder, '.onetrip'))
    fs.writeFileSync(lockOf(folder), `${process.pid}`)
    const past = Date.now() / 1000 - 61
    fs.utimesSync(lockOf(folder), past, past)
    expect(await start(folder).end()).toMatchObject({ code: 0 })
  })
})

describe('an interrupted installation', () => {
  const interruptions: Record<string, (npm: Npm) => void> = {
    'Ctrl-C': (npm) => npm.signalAll('SIGINT'),
    'SIGKILL to all': (npm) => npm.signalAll('SIGKILL'),
  }
  for (const [name, interrupt] of Object.entries(interruptions)) {
    test(`by ${name} leaves no process, and the next one is complete`, async () => {
      const folder = makeRepository(server)
      server.hold = 'tool'
      const first = start(folder)
      const pid = await middleOfInstallation(server, folder)
      interrupt(first)
      const { code, output } = await first.end()
      expect(code).not.toBe(0)
      expect(output).not.toContain('running')
      await expect.poll(() => isAlive(pid)).toBe(false)
      server.release()
      const second = await start(folder).end()
      expect(second.output).toContain('Installing')
      expect(second.output).toContain('running yes')
      expect(fs.existsSync(lockOf(folder))).toBe(false)
    })
  }

  test('is waited for if its npm survives', async () => {
    const folder = makeRepository(server)
    server.hold = 'tool'
    const env = environmentOf(folder)
    const installer = spawn(process.execPath, ['.bootstrap/install.mjs'], { cwd: folder, env })
    const pid = await middleOfInstallation(server, folder)
    onTestFinished(() => {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    })
    installer.kill('SIGKILL')
    const next = start(folder)
    await expect.poll(() => next.output).toContain('Waiting for another installation')
    server.release()
    const { code, output } = await next.end()
    expect(output).not.toContain('Installing')
    expect(code).toBe(0)
  })
})

test.for([
  ['SIGINT', 5],
  ['SIGTERM', 6],
] as const)(
  'a running program gets %s from npm, and npm exits with its code',
  async ([signal, code]) => {
    const npm = start(makeRepository(server), ['wait'])
    await expect.poll(() => npm.output).toContain('running yes wait')
    npm.signal(signal)
    expect(await npm.end()).toMatchObject({ code })
  },
)

describe('if the pinned Node does not run here', () => {
  /** A PATH whose Node prints another version. Unlike dash, bash runs only the first `node`. */
  function pathWithNode(folder: string, version: string): NodeJS.ProcessEnv {
    const source = `#!/bin/sh
case "$1" in --version) echo v${version};; *) exec '${process.execPath}' "$@";; esac
`
    fs.mkdirSync(join(folder, 'path'), { recursive: true })
    fs.writeFileSync(join(folder, 'path', 'node'), source, { mode: 0o755 })
    const path = `${join(folder, 'path')}:${process.env.PATH}`
    return { PATH: path, npm_config_script_shell: 'bash' }
  }

  test.each([
    ['no package for this platform', 'good', 'aix'],
    ['a package that cannot run here', 'broken', process.platform],
  ] as const)('(%s) runs on Node 24 or newer, with a warning', async (_, node, os) => {
    const folder = makeRepository(server, node, os)
    const warning =
      `WARNING: node_modules has no Node ${process.versions.node} that runs on ` +
      `${process.platform}-${process.arch}; using Node 24.1.0 instead, which is not tested`
    const { code, output } = await start(folder, [], pathWithNode(folder, '24.1.0')).end()
    expect(output).toContain(warning)
    expect(output).toContain('running undefined')
    expect(code).toBe(0)
  })

  test('rejects an older Node', async () => {
    const folder = makeRepository(server, 'broken')
    const { code, output } = await start(folder, [], pathWithNode(folder, '23.9.0')).end()
    expect(output).toContain('Node 23.9.0 is too old')
    expect(output).not.toContain('running')
    expect(code).toBe(1)
  })
})
