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

const casesOf = (...args: string[]) => scaling.cases(undefined as never, optionsOf(...args))
/** `connections 1 1 loopback naive` */
const textOf = (one: Case) => Object.values(one).join(' ')

describe('cases', () => {
  test('vary one factor at a time', () => {
    const cases = casesOf('--connections=64,1', '--workers=2', '--links=vpn', '--variants=batch')
    expect(cases.map(textOf)).toEqual([
      'connections 1 1 loopback batch',
      'connections 64 1 loopback batch',
      'workers 64 2 loopback batch',
      'link 64 1 vpn batch',
    ])
  })

  test('have one worker for contenders', () => {
    const cases = casesOf('--only=workers', '--workers=1,2', '--variants=noop,batch')
    expect(cases.map(textOf)).toEqual([
      'workers 64 1 loopback noop',
      'workers 64 1 loopback batch',
      'workers 64 2 loopback batch',
    ])
  })

  test('have a baseline with the same values of the other factors', () => {
    const cases = casesOf('--only=workers', '--workers=1,2', '--variants=noop,batch')
    expect(cases.map((one) => scaling.baseline?.(one, cases))).toEqual([
      { variant: 'noop' },
      { variant: 'noop' },
      { variant: 'batch' },
    ])
  })

  test('warm up each API once, except over far links', () => {
    const options = optionsOf('--connections=1,4', '--links=loopback,vpn', '--variants=batch')
    const cases = scaling.cases(undefined as never, options)
    const warmUps = (warmup: number) => scaling.warmUp?.(cases, { ...options, warmup })?.map(textOf)
    expect(warmUps(1)).toEqual(['connections 1 1 loopback batch', 'workers 64 2 loopback batch'])
    expect(warmUps(0)).toEqual([])
  })

  test('run long enough for answers', () => {
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

test('there is at least one session per connection', () => {
  expect(optionsOf('--connections=1,5000')).toMatchObject({ sessions: 5_000 })
})

test.for([
  ['--only', 'distances'],
  ['--connections', '0'],
  ['--links', 'moon'],
])('rejects %s %s with the name of the option', ([flag = '', value = '']) => {
  expect(() => optionsOf(flag, value)).toThrow(flag)
})

test('a claim compares both ends of a series, without marked rows', () => {
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
