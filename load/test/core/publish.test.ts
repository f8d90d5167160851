import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { publish, SUM_SECONDS } from '../../src/publish/publish.ts'

/** A program with commands that take no time: it writes a result of commit c1, and its first argument to `log`. */
const TINY = `
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
const args = process.argv.slice(2)
appendFileSync(join(import.meta.dirname, 'log'), args[0] + ' ')
if (args[0] === 'fails') throw new Error('no luck')
if (args[0] === 'waits') setInterval(() => {}, 1_000)
const result = { command: ['npm run load --', ...args].join(' '), git: { commit: 'c1', dirty: false } }
writeFileSync(args.at(-1), JSON.stringify({ ...result, interrupted: args[0] === 'ends-early' }))
`
const clean = { commit: 'c1', dirty: false }

async function table(...commands: string[]) {
  const folder = await temporaryFolder()
  const program = join(folder, 'tiny.mjs')
  await writeFile(program, TINY)
  const runs = commands.map((args, index) => ({ name: `r${index}`, args, seconds: 60 }))
  return {
    file: (name: string) => join(folder, 'results', `${name}.json`),
    run: (git: typeof clean | null = clean, signal = new AbortController().signal) =>
      publish(runs, { git, folder: join(folder, 'results'), program, signal }),
    log: () => readFile(join(folder, 'log'), 'utf8').catch(() => ''),
  }
}

test('measures in order what is missing, incomplete, of another commit or another command', async () => {
  const { run, file, log } = await table('a --x 1', 'ends-early', 'b', 'c')
  await run()
  expect(await log()).toBe('a ends-early b c ')
  expect(JSON.parse(await readFile(file('r0'), 'utf8')).command).toContain('a --x 1 --no-report')
  const edit = async (name: string, from: string, to: string) =>
    await writeFile(file(name), (await readFile(file(name), 'utf8')).replace(from, to))
  await edit('r2', 'c1', 'c0')
  await edit('r3', 'load -- c', 'load -- c --y')
  await run()
  expect(await log()).toBe('a ends-early b c ends-early b c ')
})

test('measures the other results first, then reports the failure', async () => {
  const { run, log } = await table('a', 'fails', 'b')
  await expect(run()).rejects.toThrow(/^1 of 3 runs failed\. [\s\S]*r1 [\s\S]*no luck/)
  await expect(run()).rejects.toThrow('1 of 1 runs failed.')
  expect(await log()).toBe('a fails b fails ')
})

test.for([null, { commit: 'c1', dirty: true }])('measures nothing of %o', async (git) => {
  const { run, log } = await table('a')
  await expect(run(git)).rejects.toThrow('The working copy has changes')
  expect(await log()).toBe('')
})

test('an interrupt stops the run, and the next call goes on with it', async () => {
  const { run, log } = await table('a', 'waits', 'b')
  const interrupt = new AbortController()
  const ended = expect(run(clean, interrupt.signal)).rejects.toThrow('enough')
  await expect.poll(log, { timeout: 30_000 }).toBe('a waits ')
  interrupt.abort(new Error('enough'))
  await ended
  expect(await log()).toBe('a waits ')
})

test('all published results take 45 minutes at most', () => {
  expect(SUM_SECONDS).toBeLessThanOrEqual(45 * 60)
})
