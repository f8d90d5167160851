import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { isAlive } from '../src/processes.ts'
import { killPrograms, type ProgramOptions, startProgram } from '../src/program.ts'

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
  test('waits for a line of output; stop() sends SIGTERM', async () => {
    const program = await node(`console.log('ready'); setInterval(() => {}, 1000)`)
    expect(isAlive(program.pid)).toBe(true)
    expect(await program.stop()).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('waits for a probe', async () => {
    let answer = () => {}
    const asked = Promise.withResolvers<void>()
    const starting = node('setInterval(() => {}, 1000)', {
      ready: () =>
        new Promise<void>((resolve) => {
          answer = resolve
          asked.resolve()
        }),
    })
    await asked.promise
    answer()
    await (await starting).stop()
  })

  test('throws the last lines of output if the program exits', async () => {
    let gaveUp = false
    const starting = node(`console.error('no Redis'); process.exit(3)`, {
      async ready(signal) {
        await once(signal, 'abort')
        gaveUp = true
      },
    })
    await expect(starting).rejects.toThrow(/exit code 3\):\nno Redis/)
    expect(gaveUp).toBe(true)
  })

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

  test('throws after the time limit', async () => {
    const starting = node('setInterval(() => {}, 1000)', { readyTimeoutMs: 50 })
    await expect(starting).rejects.toThrow('not ready after 0.05 s')
  })

  test('kills a program that ignores SIGTERM', async () => {
    const program = await node(
      `process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)`,
    )
    expect(await program.stop(50)).toEqual({ code: null, signal: 'SIGKILL' })
  })

  test('reports that a program cannot be run', async () => {
    await expect(node('', { command: './no-such-program' })).rejects.toThrow(
      /^a script exited before it was ready \(it cannot be run\):\nspawn .* ENOENT$/,
    )
  })
})

test('killPrograms uses the kill signal of each program', async () => {
  const script = `process.on('SIGTERM', () => process.exit(7)); console.log('ready'); setInterval(() => {}, 1000)`
  const plain = await node(script)
  const gentle = await node(script, { killSignal: 'SIGTERM' })
  killPrograms()
  expect(await plain.exited).toEqual({ code: null, signal: 'SIGKILL' })
  expect(await gentle.exited).toEqual({ code: 7, signal: null })
})
