import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isAlive } from '../src/processes.ts'
import { type ProgramOptions, startProgram } from '../src/program.ts'
import { childrenOf } from './support/start.ts'

function node(script: string, options: Partial<ProgramOptions> = {}) {
  return startProgram({
    name: 'a script',
    command: process.execPath,
    args: ['-e', script],
    ready: /ready/,
    ...options,
  })
}

describe('startProgram', () => {
  test.for([
    ['by SIGTERM', '', 0, 'SIGTERM'],
    ['by SIGKILL, if it ignores SIGTERM', `process.on('SIGTERM', () => {});`, 50, 'SIGKILL'],
  ] as const)(
    'waits for a line of output; stop() ends it %s',
    async ([, script, graceMs, signal]) => {
      const program = await node(`${script} console.log('ready'); setInterval(() => {}, 1000)`)
      expect(isAlive(program.pid)).toBe(true)
      expect(await program.stop(graceMs || undefined)).toEqual({ code: null, signal })
    },
  )

  test.for([
    ['exits', `console.error('no Redis'); process.exit(3)`, {}, /exit code 3\):\nno Redis/],
    [
      'takes too long',
      'setInterval(() => {}, 1000)',
      { readyTimeoutMs: 50 },
      /not ready after 0.05 s/,
    ],
    ['cannot be run', '', { command: './no-such-program' }, /^a script .*\nspawn .* ENOENT$/],
  ] as const)(
    'throws with the last lines of output if the program %s',
    async ([, script, options, message]) => {
      await expect(node(script, options)).rejects.toThrow(message)
    },
  )

  test('can be aborted and leaves no process', async () => {
    const controller = new AbortController()
    let pid = 0
    const starting = node('console.log(process.pid); setInterval(() => {}, 1000)', {
      signal: controller.signal,
      onLine(line) {
        pid = Number(line)
        controller.abort(new Error('enough'))
      },
    })
    await expect(starting).rejects.toThrow('enough')
    expect(pid).toBeGreaterThan(0)
    expect(isAlive(pid)).toBe(false)
  })
})

describe('a program that another process has started', () => {
  /** Runs a script that has `child`, a program that it has started and that ends by SIGTERM only. */
  async function parent(script: string) {
    const path = fileURLToPath(new URL('../src/program.ts', import.meta.url))
    let pid = 0
    const program = await node(
      `import { launch } from ${JSON.stringify(path)}
      const args = ['-e', 'setInterval(() => {}, 1000)']
      const child = launch({ name: 'a child', command: process.execPath, args })
      console.log(child.pid)
      ${script}
      console.log('ready')`,
      { onLine: (line) => (pid ||= Number(line)), env: { ...process.env, NODE_OPTIONS: '' } },
    )
    onTestFinished(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')))
    onTestFinished(async () => void (await program.stop()))
    return { program, pid }
  }

  test.each([
    ['is killed', '', 'SIGKILL'],
    ['is killed, and the program is stopped', `child.signal('SIGSTOP')`, 'SIGKILL'],
    ['throws', `setTimeout(() => { throw new Error('a mistake') }, 50)`, undefined],
  ] as const)('ends when that process %s', async (_name, script, signal) => {
    const { program, pid } = await parent(script)
    if (signal) program.signal(signal)
    await program.exited
    await expect.poll(() => isAlive(pid)).toBe(false)
  })

  test.runIf(process.platform === 'linux')('has nothing that waits for its end', async () => {
    const { program } = await parent('await child.stop(); setInterval(() => {}, 1000)')
    await expect.poll(() => childrenOf(program.pid)).toEqual([])
  })
})
