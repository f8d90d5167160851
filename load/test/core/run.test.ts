import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Experiment, Run } from '../../src/experiments/experiment.ts'
import { partOf } from '../../src/reporting/part.ts'
import { orderOf } from '../../src/rounds/rounds.ts'
import type { Measured } from '../../src/rounds/shape.ts'
import { runExperiment } from '../../src/run.ts'

interface Toy {
  what: string
}

const printed: string[] = []
beforeEach(() => {
  printed.length = 0
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed.push(String(text))
    return true
  })
})
afterEach(() => void vi.restoreAllMocks())

const undone: string[] = []

/** An experiment with two cases. */
function toy(
  measure: (name: string, run: Run<object>) => Promise<Measured> = async () => ({ values: {} }),
): Experiment<Toy, string> {
  return {
    name: 'toy',
    title: 'Toys',
    summary: 'measure toys',
    about: '',
    rounds: 3,
    duration: 1,
    quick: {},
    subject: 'name',
    configure: () => {},
    factors: [{ name: 'name', label: 'toy' }],
    metrics: [{ name: 'size', label: 'size' }],
    progress: ['size'],
    async prepare(context, { what }) {
      undone.length = 0
      context.defer(() => undone.push('first'))
      context.defer(() => undone.push('last'))
      context.describe('load', { what })
      return 'bench'
    },
    cases: () => [{ name: 'a' }, { name: 'b' }],
    warmUp: (cases) => cases.slice(0, 1),
    measure: async ({ name }, bench, run) => {
      expect(bench).toBe('bench')
      return await measure(String(name), run)
    },
    sections: () => [],
  }
}

async function run(experiment: Experiment<Toy, string>, interrupt = new AbortController()) {
  return await runExperiment(experiment, {
    options: { rounds: 3, duration: 1, what: 'dolls' } as never,
    commandLine: 'npm run load -- toy',
    interrupt: interrupt.signal,
  })
}

test('a result has all rounds without the warm-up, and the conditions of the measurement', async () => {
  const runs: string[] = []
  const measure = async (name: string, { round }: Run<object>) => {
    runs.push(`${name}${round}`)
    return { values: { size: round }, errors: {}, doubts: [] }
  }
  const { result, error } = await run(toy(measure))
  expect(runs).toEqual(['a0', 'a1', 'b1', 'b2', 'a2', 'b3', 'a3'])
  expect(error).toBeNull()
  expect(result).toMatchObject({
    command: 'npm run load -- toy',
    interrupted: false,
    load: { what: 'dolls' },
    metrics: { size: 'size' },
    options: { rounds: 3, duration: 1, what: 'dolls' },
  })
  expect(result.samples).toHaveLength(6)
  const [first] = result.samples
  expect(first).toEqual({
    case: { name: 'a' },
    round: 1,
    values: { size: 1, elsewhere: null }, // null for short runs
  })
  expect(undone).toEqual(['last', 'first'])
  const text = printed.join('')
  expect(text).toMatch(/^what +dolls$/m)
  expect(text).toMatch(/^Round 3\/3 {2}a {2}size 3\.00$/m)
})

describe('a run that ends early', () => {
  const breaking = (at: string, fail: (run: Run<object>) => void) =>
    toy(async (name, run) => {
      if (`${name}${run.round}` === at) fail(run)
      return { values: { size: 1 } }
    })

  test.each([
    ['b2', 2],
    ['b3', 4],
  ])('a failure in %s keeps %i samples and the reason', async (at, left) => {
    const experiment = breaking(at, ({ context }) => {
      setImmediate(() => context.fail(new Error('Redis is gone'))) // noticed a moment later
      throw new Error('connection lost')
    })
    const { result, error } = await run(experiment)
    expect(result).toMatchObject({ interrupted: false, failure: 'Redis is gone' })
    expect(result.samples).toHaveLength(left)
    expect(error).toMatchObject({ message: 'Redis is gone' })
    expect(undone).toEqual(['last', 'first'])
    expect(partOf({ experiment, result }).ending.join()).toContain('Redis is gone')
  })

  test.each(['a2', 'b3'])('an interrupt in %s keeps the complete rounds', async (at) => {
    const interrupt = new AbortController()
    const experiment = breaking(at, () => {
      interrupt.abort(new Error('enough'))
      if (at === 'a2') throw new Error('connection lost')
    })
    const { result } = await run(experiment, interrupt)
    expect(result).toMatchObject({ interrupted: true })
    expect(result.failure).toBeUndefined()
    expect(result.samples).toHaveLength(at === 'a2' ? 2 : 4)
  })

  test.each(['a0', 'b1'])('an interrupt in %s leaves no result', async (at) => {
    const interrupt = new AbortController()
    const experiment = breaking(at, () => interrupt.abort(new Error('enough')))
    await expect(run(experiment, interrupt)).rejects.toThrow('enough')
    expect(undone).toEqual(['last', 'first'])
  })

  test('rejects options that select no case', async () => {
    await expect(run({ ...toy(), cases: () => [] })).rejects.toThrow('nothing to measure')
  })
})

test('over the rounds, each case comes early and late, and before and after each other case', () => {
  const orders = Array.from({ length: 6 }, (_, round) => orderOf(['a', 'b', 'c'], round).join(''))
  expect(new Set(orders).size).toBe(6)
  const two = Array.from({ length: 4 }, (_, round) => orderOf(['a', 'b'], round).join(''))
  expect(two).toEqual(['ab', 'ba', 'ba', 'ab'])
})
