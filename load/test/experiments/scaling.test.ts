import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { Rows } from '../../src/experiment/rows.ts'
import type { Case } from '../../src/experiment/shape.ts'
import { scaling, secondsOf } from '../../src/experiments/scaling/scaling.ts'

function optionsOf(...args: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  scaling.configure(command)
  command.parse(args, { from: 'user' })
  const options = { ...command.opts<Parameters<typeof scaling.cases>[1]>(), rounds: 1, duration: 1 }
  return scaling.complete?.(options) ?? options
}

/** The cases that these options lead to: `connections 1 1 loopback naive`. */
const casesOf = (...args: string[]) => scaling.cases(undefined as never, optionsOf(...args))
const told = (one: Case) => Object.values(one).join(' ')

describe('cases', () => {
  test('one thing changes while the rest stays as it is', () => {
    const cases = casesOf('--connections=64,1', '--workers=2', '--links=vpn', '--variants=batch')
    expect(cases.map(told)).toEqual([
      'connections 1 1 loopback batch',
      'connections 64 1 loopback batch',
      'workers 64 2 loopback batch',
      'link 64 1 vpn batch',
    ])
  })

  test('contenders have one process', () => {
    const cases = casesOf('--only=workers', '--workers=1,2', '--variants=noop,batch')
    expect(cases.map(told)).toEqual([
      'workers 64 1 loopback noop',
      'workers 64 1 loopback batch',
      'workers 64 2 loopback batch',
    ])
  })

  test('each is compared with the same reference at its own place', () => {
    const cases = casesOf('--only=workers', '--workers=1,2', '--variants=noop,batch')
    expect(cases.map((one) => scaling.baseline?.(one, cases))).toEqual([
      { variant: 'noop' },
      { variant: 'noop' },
      { variant: 'batch' },
    ])
  })

  test('each API is warmed up once, but none that is far from its Redis', () => {
    const options = optionsOf('--connections=1,4', '--links=loopback,vpn', '--variants=batch')
    const cases = scaling.cases(undefined as never, options)
    const warmUps = (warmup: number) => scaling.warmUp?.(cases, { ...options, warmup })?.map(told)
    expect(warmUps(1)).toEqual(['connections 1 1 loopback batch', 'workers 64 2 loopback batch'])
    expect(warmUps(0)).toEqual([])
  })

  test('a run is long enough for an answer', () => {
    const cases = casesOf(
      '--connections=64,1000',
      '--links=switch,vpn',
      '--workers=1',
      '--variants=batch',
    )
    expect(cases.map((one) => secondsOf(one, { duration: 1 }))).toEqual([1, 3, 1, 1, 6])
    expect(cases.map((one) => secondsOf(one, { duration: 10 }))).toEqual([10, 10, 10, 10, 10])
  })
})

test('at least a session for each connection', () => {
  expect(optionsOf('--connections=1,5000')).toMatchObject({ sessions: 5_000 })
})

test.for([
  ['--only', 'distances'],
  ['--connections', '0'],
  ['--links', 'moon'],
])('%s %s is refused, by name', ([flag = '', value = '']) => {
  expect(() => optionsOf(flag, value)).toThrow(flag)
})

test('a claim is about the ends of a series, without rows that are marked', () => {
  const claims = (counts: number[]) => {
    const samples = counts.flatMap((connections) =>
      ['naive', 'batch'].map((variant) => ({
        case: { series: 'connections', connections, workers: 1, link: 'loopback', variant },
        round: 1,
        values: { requestsPerSecond: variant === 'naive' ? 100 : 400 + connections },
        ...(connections > 64 && { doubts: ['crowded'] }),
      })),
    )
    return scaling.claims(Rows.of(scaling, samples), undefined as never).filter(Boolean)
  }
  expect(claims([1, 16, 64, 256])).toEqual([
    'By HTTP connections: batch answers 4.01 times (1) and 4.64 times (64) as many requests a second as naive.',
  ])
  expect(claims([64, 256])).toEqual([])
})
