import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('big-keys measures LRANGE by length, and DEL and UNLINK by type', async () => {
  const args = [
    '--quick',
    '--sets=big-keys',
    '--duration=0.3',
    '--lengths=1,5000',
    '--elements=200000',
  ]
  const { text, result } = await runExperiment('commands', args)
  expect(text).toMatch(
    /^An LRANGE of 5,000 elements takes [\d.,]+ µs .*, [\d.]+ ns per additional element\.$/m,
  )
  const metric = (name: string, one: Record<string, unknown>) => {
    const same = (of: object) => expect.objectContaining(one).asymmetricMatch(of)
    return Number(result.samples.find((sample) => same(sample.case))?.values[name])
  }
  const reads = [1, 5_000].map((elements) => ({ command: 'LRANGE', elements }))
  const [short, long] = reads.map((one) => metric('mainCpuMicros', one))
  expect(long).toBeGreaterThan(5 * Number(short))
  for (const key of ['list', 'set', 'hash', 'sorted set']) {
    expect(text).toContain(`DEL of a ${key} with 200,000 elements blocked all other clients for `)
  }
  // Without lists: a node of a list has many elements, so even DEL frees it quickly.
  for (const key of ['set', 'hash', 'sorted set']) {
    const [del = 0, unlink = 0] = ['DEL', 'UNLINK'].map((command) =>
      metric('backgroundCpuMicros', { command, key }),
    )
    expect(unlink).toBeGreaterThan(2 * del)
    expect(metric('executionMicros', { command: 'DEL', key })).toBeGreaterThan(0)
  }
  expect(result.samples.every(({ errors }) => errors === undefined)).toBe(true)
  expect(metric('executionMicros', { command: 'nothing' })).toBeNaN()
})

test('info shows that CLIENT LIST needs more CPU time with more clients', async () => {
  // Long enough for a reply on a busy machine.
  const args = ['--quick', '--sets=info', '--duration=0.3', '--idle=10,800']
  const { text, result } = await runExperiment('commands', args)
  expect(text).toMatch(
    /CLIENT LIST \(patched\): a reply takes [\d.]+ times as much CPU time with 800/,
  )
  const cost = (command: string, idle: number) =>
    result.samples.find(({ case: one }) => one.command === command && one.idle === idle)?.values
      .mainCpuMicros
  expect(cost('CLIENT LIST', 800)).toBeGreaterThan(2 * Number(cost('CLIENT LIST', 10)))
  expect(cost('INFO', 800)).toBeLessThan(Number(cost('CLIENT LIST', 800)))
  expect(cost('nothing', 10)).toBeUndefined()
})
