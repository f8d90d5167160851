import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { type ProgramOptions, startProgram } from '../src/program.ts'
import { isAlive } from '../src/record.ts'

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
  test('waits for a line, and stops by SIGTERM', async () => {
    const program = await node(`console.log('ready'); setInterval(() => {}, 1000)`)
    expect(isAlive(program.pid)).toBe(true)
    expect(await program.stop()).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('waits for a probe', async () => {
    let answer = () => {}
    const asked = Promise.withResolvers<void>()
    const starting = node('setInterval(() => {}, 1000)', {
      ready: () =>
        new Promise((resolve) => {
          answer = resolve
          asked.resolve()
        }),
    })
    await asked.promise
    answer()
    await (await starting).stop()
  })

  test('gives the probe up when the program ends, and tells its last lines', async () => {
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

  test('can be given up by a signal, and leaves no process', async () => {
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

  test('does not wait for ever', async () => {
    const starting = node('setInterval(() => {}, 1000)', { readyTimeoutMs: 50 })
    await expect(starting).rejects.toThrow('not ready after 0.05 s')
  })

  test('a program that does not react to SIGTERM is killed', async () => {
    const program = await node(
      `process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)`,
    )
    expect(await program.stop(50)).toEqual({ code: null, signal: 'SIGKILL' })
  })
})
