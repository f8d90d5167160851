import { describe, expect, test } from 'vitest'
import { http } from '../../src/experiments/http/http.ts'
import { compare } from '../../src/reporting/compare.ts'
import type { Result, Sample } from '../../src/rounds/result.ts'
import { httpSamples, resultOf } from '../support/result.ts'

// Rounds that differ by a few percent.
const naive = [2_500, 2_550, 2_450, 2_520, 2_480]
const batch = [40_000, 41_000, 39_000, 40_300, 39_800]
const times = (rates: readonly number[], factor: number) => rates.map((rate) => rate * factor)

const resultWith = (
  rates: Record<string, readonly number[]>,
  more?: (variant: string) => Partial<Sample>,
  change?: Partial<Result>,
) => ({ name: '', experiment: http, result: resultOf(http, httpSamples(rates, more), change) })
type Saved = ReturnType<typeof resultWith>

const changesOf = (before: Saved, after: Saved, tolerance = 0.1) =>
  Object.fromEntries(
    compare(before, after, tolerance)
      .changes.filter(({ verdict }) => verdict === 'better' || verdict === 'worse')
      .map(({ name, metric, verdict }) => [`${name}: ${metric}`, verdict]),
  )

describe('compare', () => {
  const before = resultWith({ naive, batch })

  test('finds a variant that got slower relative to its baseline, on a slower machine', () => {
    expect(changesOf(before, before)).toEqual({})
    const after = resultWith({ naive: times(naive, 0.6), batch: times(batch, 0.48) })
    expect(changesOf(before, after)).toEqual({ 'batch: requests/s': 'worse' })
    expect(changesOf(after, before)).toEqual({ 'batch: requests/s': 'better' })
  })

  test('ignores changes below the tolerance, and changes within the noise', () => {
    const slower = resultWith({ naive, batch: times(batch, 0.95) })
    expect(changesOf(before, slower)).toEqual({})
    expect(changesOf(before, slower, 0.02)).toEqual({ 'batch: requests/s': 'worse' })
    const noisy = resultWith({ naive, batch: [20_000, 60_000, 30_000, 50_000, 25_000] })
    expect(changesOf(before, noisy)).toEqual({})
  })

  test('finds more CPU time and commands, and lists different conditions', () => {
    const options = { ...before.result.options, connections: 8 }
    const more = () => ({ values: { apiCpuMicros: 600, commands: 20 } })
    const after = resultWith({ naive, batch }, more, { options })
    expect(changesOf(before, after)).toEqual({
      'naive: API CPU µs /request': 'worse',
      'naive: commands /request': 'worse',
      'batch: API CPU µs /request': 'worse',
      'batch: commands /request': 'worse',
    })
    expect(compare(before, after, 0.1).differences).toEqual(['connections: 64, now 8'])
  })

  test('refuses results of another processor, or measured while other programs ran', () => {
    const machine = { ...before.result.machine, cpu: 'other' }
    for (const change of [{ machine }, { elsewhere: 0.4 }]) {
      const after = resultWith({ naive, batch }, undefined, change)
      expect(() => compare(before, after, 0.1)).toThrow('cannot be compared')
    }
  })

  test('needs two rounds of the same case', () => {
    expect(() => compare(before, resultWith({ batch: [1] }), 0.1)).toThrow('two or more rounds')
    expect(() => compare(before, resultWith({ bare: naive }), 0.1)).toThrow('of the same cases')
  })
})
