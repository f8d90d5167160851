import { describe, expect, test } from 'vitest'
import {
  earlyText,
  endingOf,
  endingText,
  orderOf,
  type RoundsPlan,
  runRounds,
  throwFailure,
} from '../src/experiment/rounds.ts'

/** Two variants for three rounds; `at` is called before each run. */
function plan(at: (run: string) => void = () => {}): RoundsPlan<string, string> {
  const run = async (what: string) => {
    at(what)
    return what
  }
  return {
    ...{ variants: ['a', 'b'], rounds: 3, label: (variant) => variant, describe: String },
    warmUp: (variant) => run(`${variant}0`),
    measure: (variant, round) => run(`${variant}${round}`),
  }
}

/** Runs it, and tells what was shown. */
async function running(given: RoundsPlan<string, string>, controllers = twoSignals()) {
  const shown: string[] = []
  const notes: (string | undefined)[] = []
  const progress = {
    begin(text: string, note?: string) {
      shown.push(text)
      notes.push(note)
    },
    end: () => {},
  }
  const { interrupt, broken } = controllers
  const signal = AbortSignal.any([interrupt.signal, broken.signal])
  const run = await runRounds({ interrupt: interrupt.signal, signal, progress }, given)
  return { ...run, shown, notes }
}

const twoSignals = () => ({ interrupt: new AbortController(), broken: new AbortController() })

test('each variant once per round, in changing order, after a warm-up', async () => {
  const { samples, early, shown } = await running(plan())
  expect(samples).toEqual(['a1', 'b1', 'b2', 'a2', 'b3', 'a3'])
  expect(early).toBeNull()
  expect(shown.slice(0, 3)).toEqual(['Warm-up    a', 'Warm-up    b', 'Round 1/3  a'])
})

test('how long it still takes is told once there is a run to tell it from', async () => {
  const { notes } = await running(plan())
  expect(notes.slice(0, 3)).toEqual(['', '', ''])
  for (const note of notes.slice(3)) expect(note).toMatch(/^\d+ s left$/)
})

test('no warm-up, if there is none', async () => {
  const { shown } = await running({ ...plan(), warmUp: undefined })
  expect(shown).toHaveLength(6)
})

describe('an interrupt', () => {
  test.each(['b0', 'b1'])('in %s leaves nothing', async (when) => {
    const controllers = twoSignals()
    const given = plan((run) => {
      if (run === when) controllers.interrupt.abort(new Error('enough'))
    })
    await expect(running(given, controllers)).rejects.toThrow('enough')
  })

  test.each([
    ['b2', ['a1', 'b1']],
    ['a2', ['a1', 'b1']],
    ['b3', ['a1', 'b1', 'b2', 'a2']],
  ])('in %s leaves %j', async (when, left) => {
    const controllers = twoSignals()
    const given = plan((run) => {
      if (run === when) controllers.interrupt.abort(new Error('enough'))
    })
    const run = await running(given, controllers)
    expect(run).toMatchObject({ samples: left, early: { interrupted: true } })
  })

  test('is what ended it, also if that made a run fail', async () => {
    const controllers = twoSignals()
    const given = plan((run) => {
      if (run !== 'a2') return
      controllers.interrupt.abort(new Error('enough'))
      throw new Error('connection lost')
    })
    const { samples, early } = await running(given, controllers)
    expect([samples, early?.interrupted]).toEqual([['a1', 'b1'], true])
  })
})

describe('a failure', () => {
  test('leaves the rounds that are complete', async () => {
    const { samples, early } = await running(
      plan((run) => {
        if (run === 'a2') throw new Error('connection lost')
      }),
    )
    expect(samples).toEqual(['a1', 'b1'])
    expect(endingOf(early)).toEqual({ interrupted: false, failure: 'connection lost' })
    expect(earlyText(early)).toMatch(/connection lost(.|\n)*of the rounds that are complete/)
    expect(endingText(endingOf(early))).toEqual([
      'Of the rounds that were complete when it failed: connection lost',
    ])
    expect(() => throwFailure(early)).toThrow('connection lost')
  })

  test('in the first round leaves nothing', async () => {
    const failing = plan((run) => {
      if (run === 'b1') throw new Error('connection lost')
    })
    await expect(running(failing)).rejects.toThrow('connection lost')
  })

  test('is explained by what broke, also if that is known a moment later', async () => {
    const controllers = twoSignals()
    const given = plan((run) => {
      if (run !== 'a2') return
      setImmediate(() => controllers.broken.abort(new Error('Redis is gone')))
      throw new Error('connection lost')
    })
    const { early } = await running(given, controllers)
    expect(endingOf(early)).toEqual({ interrupted: false, failure: 'Redis is gone' })
  })
})

test('every variant comes early and late, before and after each other one', () => {
  const orders = Array.from({ length: 6 }, (_, round) => orderOf(['a', 'b', 'c'], round).join(''))
  expect(new Set(orders).size).toBe(6)
  const two = Array.from({ length: 4 }, (_, round) => orderOf(['a', 'b'], round).join(''))
  expect(two).toEqual(['ab', 'ba', 'ba', 'ab'])
})
