import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Serves packages. Can delay a download, so that npm waits in the middle of an installation. */
export class PackageServer {
  readonly #server = createServer((request, response) => this.#answer(request.url ?? '', response))
  readonly #folder = fs.mkdtempSync(join(tmpdir(), 'onetrip-packages-'))
  #held: ServerResponse[] = []
  /** Package whose downloads wait for `release()`. */
  hold = ''
  /** Package that is not found. */
  missing = ''

  /** Starts the server before the tests of this file and stops it after them. */
  constructor() {
    beforeAll(async () => {
      this.#server.listen(0, '127.0.0.1')
      await once(this.#server, 'listening')
    })
    beforeEach(() => {
      this.missing = ''
      this.release()
    })
    afterAll(() => {
      this.#server.closeAllConnections()
      this.#server.close()
      fs.rmSync(this.#folder, { recursive: true, force: true })
    })
  }

  get isHolding(): boolean {
    return this.#held.length > 0
  }

  release(): void {
    this.hold = ''
    for (const response of this.#held.splice(0)) this.#answer(response.req.url ?? '', response)
  }

  /** Packs a package with one program. Returns its entry for package-lock.json. */
  pack(name: string, program: string, source: string) {
    const folder = join(this.#folder, name)
    const bin = { [program]: `bin/${program}` }
    fs.mkdirSync(join(folder, 'bin'), { recursive: true })
    fs.writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', bin }))
    fs.writeFileSync(join(folder, 'bin', program), source, { mode: 0o755 })
    execFileSync('tar', ['czf', `${folder}.tgz`, '-C', this.#folder, name])
    const hash = createHash('sha512').update(fs.readFileSync(`${folder}.tgz`))
    const { port } = this.#server.address() as AddressInfo
    return {
      version: '1.0.0',
      resolved: `http://127.0.0.1:${port}/${name}`,
      integrity: `sha512-${hash.digest('base64')}`,
      bin,
    }
  }

  #answer(url: string, response: ServerResponse): void {
    const name = url.slice(1)
    if (name === this.hold) this.#held.push(response)
    else if (name === this.missing) response.writeHead(404).end()
    else response.end(fs.readFileSync(join(this.#folder, `${name}.tgz`)))
  }
}

const PROGRAM = `
process.on('SIGINT', () => process.exit(5)).on('SIGTERM', () => process.exit(6))
console.log('running', process.env.PINNED, process.argv.slice(2).join('|'))
if (process.argv[2] === 'wait') setInterval(() => {}, 1000)
else process.exitCode = Number(process.argv[2] ?? 0)
`

/** The pinned Node of a repository. `good` sets PINNED; `broken` cannot run, as without its C library. */
const NODES = {
  good: `#!/bin/sh\nPINNED=yes exec '${process.execPath}' "$@"\n`,
  broken: '#!/no/such/loader\n',
}

/**
 * Makes a repository with our installer, our `npm start` and three packages (one for development), in a folder with a space
 * in its name. Removed after the test.
 */
export function makeRepository(
  server: PackageServer,
  node: keyof typeof NODES = 'good',
  os: string = process.platform,
): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'onetrip install '))
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
  const tool = server.pack('tool', 'tool', '#!/bin/sh\necho tool\n')
  const checker = server.pack('checker', 'checker', '#!/bin/sh\necho checked\n')
  const pinned = server.pack(`node-${node}`, 'node', NODES[node])
  const needs = {
    name: 'here',
    version: '1.0.0',
    dependencies: { tool: '1.0.0' },
    devDependencies: { checker: '1.0.0' },
    optionalDependencies: { [`node-${node}`]: '1.0.0' },
  }
  const { scripts } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))
  const start = scripts.start.replace(/[\w/]+\/start\.ts/, 'program.mjs')
  const test = scripts.test.replace(/vitest .*/, 'checker')
  const packages = {
    '': needs,
    'node_modules/tool': tool,
    'node_modules/checker': { ...checker, dev: true },
    [`node_modules/node-${node}`]: { ...pinned, optional: true, os, cpu: process.arch },
  }
  const lock = { name: 'here', version: '1.0.0', lockfileVersion: 3, requires: true, packages }
  const files = {
    'package.json': JSON.stringify({ ...needs, scripts: { start, test } }),
    'package-lock.json': JSON.stringify(lock),
    '.npmrc': fs.readFileSync(join(root, '.npmrc')),
    '.node-version': process.versions.node,
    'program.mjs': PROGRAM,
    '.bootstrap/install.mjs': fs.readFileSync(join(root, '.bootstrap/install.mjs')),
  }
  fs.mkdirSync(join(folder, '.bootstrap'))
  for (const [path, content] of Object.entries(files)) fs.writeFileSync(join(folder, path), content)
  return folder
}

/** The environment of a shell in which the user runs npm, with an empty cache. */
export function environmentOf(folder: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_ENV$/i.test(name))
  return { ...Object.fromEntries(own), npm_config_cache: join(folder, 'cache'), ...more }
}

/** Runs npm in a process group of its own, as a terminal does. Killed after the test. */
export class Npm {
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown[]>
  /** Output so far. */
  output = ''

  constructor(folder: string, args: string[], more?: NodeJS.ProcessEnv) {
    const env = environmentOf(folder, more)
    this.#child = spawn('npm', args, { cwd: folder, env, detached: true })
    this.#closed = once(this.#child, 'close')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.output += chunk
      })
    }
    onTestFinished(() => this.signalAll('SIGKILL'))
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Sends a signal to npm and all its child processes, as Ctrl-C in a terminal does. */
  signalAll(signal: NodeJS.Signals): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal)
    } catch {
      // All of them have ended.
    }
  }

  async end() {
    const [code, signal] = await this.#closed
    return { code, signal, output: this.output }
  }
}

export function start(folder: string, args: string[] = [], more?: NodeJS.ProcessEnv): Npm {
  return new Npm(folder, ['start', '--', ...args], more)
}

export const lockOf = (folder: string) => join(folder, '.onetrip', 'installing.pid')

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Waits until a download is delayed. Returns the process id of the installing npm. */
export async function middleOfInstallation(server: PackageServer, folder: string): Promise<number> {
  await expect.poll(() => server.isHolding).toBe(true)
  return Number(fs.readFileSync(lockOf(folder), 'utf8'))
}
