import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { mutations } from './simulation/mutations.ts'

const cli = fileURLToPath(new URL('simulation/cli.ts', import.meta.url))

/** Runs the simulation in a process of its own, because it replaces the clock. */
async function simulate(...args: string[]): Promise<{ code: number; text: string }> {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      text += data
    })
  }
  const [code] = await once(child, 'close')
  return { code, text }
}

test('ten seconds of simulated services with new seeds find nothing wrong', async () => {
  const { code, text } = await simulate('--minutes', String(10 / 60))
  console.log(text.trimEnd().split('\n').at(-1))
  expect(code, text).toBe(0)
  expect(text).toMatch(/^seed \d+$/m)
}, 300_000)

test('a fault is found, and its seed repeats it', async () => {
  const [{ name } = { name: '' }] = mutations.slice(2)
  const found = await simulate('--mutation', name, '--minutes', '2', '--hours', '2')
  const [, seed = '', what = ''] = /Error: seed (\d+): (.*)/.exec(found.text) ?? []
  expect(found.code).not.toBe(0)
  const again = await simulate('--mutation', name, '--seed', seed, '--hours', '2')
  expect(again.text).toContain(`Error: seed ${seed}: ${what}`)
}, 300_000)

test('there are 20 faults to find, each with a name of its own', () => {
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length)
  expect(mutations.length).toBeGreaterThanOrEqual(20)
})

test.for([
  [['--seed', 'abc'], '--seed must be a number'],
  [['--mutation', 'none'], 'There is no mutation "none"'],
] as const)('%s is refused', async ([args, message]) => {
  const { code, text } = await simulate(...args)
  expect(code).toBe(1)
  expect(text).toContain(message)
})
