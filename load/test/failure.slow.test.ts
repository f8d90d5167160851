import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { expectNothingLeft, runLoad } from './support/run.ts'

// If a program dies during a run, the complete rounds are kept, as after an interrupt.

/** The process of this run whose command line has all of these words. */
async function processOf(state: string, words: readonly string[]): Promise<number> {
  for (const pid of await processesOf(state)) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (words.every((word) => line.includes(word))) return pid
  }
  throw new Error(`no process has ${words.join(' and ')}: ${await readdir('/proc')}`)
}

const brief = ['--rounds=1000', '--duration=0.5', '--no-report']
const served = ['--warmup=0', '--variants=batch', '--sessions=8', '--connections=4']
const redis = { name: 'Redis (patched)', words: ['redis-server'] }
const api = { name: 'the batch API', words: ['apps/api/src/server.ts'] }

test.for([
  ['http', api, served],
  ['redis short', redis, ['--builds=patched', '--idle=0', '--transports=unix']],
] as const)(
  '%s keeps the complete rounds when a program is killed',
  async ([command, victim, options]) => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'result.json')
    const args = [...command.split(' '), ...brief, ...options, '--json', json]
    const load = await runLoad({ state, args, until: /^Round 2\// })
    process.kill(await processOf(state, victim.words), 'SIGKILL')
    expect(await load.exited).toEqual({ code: 1, signal: null })
    const text = load.output.join('\n')
    const message = `${victim.name} exited unexpectedly (SIGKILL)`
    expect(text).toContain(message)
    expect(text).toMatch(/^Failed: the figures cover the complete rounds only\. /m)
    const result = JSON.parse(await readFile(json, 'utf8'))
    expect(result).toMatchObject({ interrupted: false, failure: expect.stringContaining(message) })
    expect(result.samples.length).toBeGreaterThan(0)
    expect(result.samples.length).toBeLessThan(1_000)
    await expectNothingLeft(state)
  },
)
