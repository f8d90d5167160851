import { inspect } from 'node:util'
import { hideCredentials, redisAddress, requireOwnHost } from '@onetrip/stack/address.ts'
import { describe, expect, test } from 'vitest'
import { encode, greeting } from '../../src/drivers/redis/raw-connection.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { loop } from '../../src/experiments/client/callers.ts'
import { client } from '../../src/experiments/client/client.ts'
import {
  describeOthers,
  describeOwn,
  isOutOfPorts,
  readingTable,
  verdictOf,
  type Yardstick,
  yardstickOf,
} from '../../src/experiments/client/diagnosis.ts'
import { Address } from '../../src/experiments/client/target.ts'

/** A server beside which the documents' shares hold. */
const near: Yardstick = {
  ...{ reference: 30_000, keeps: 24_000 },
  ...{ reconnects: 9_000, reconnectsWithGreeting: 3_000 },
}

/** One so far away that a command and a new connection each cost a round trip. */
const far: Yardstick = {
  ...{ reference: 1_000, keeps: 980 },
  ...{ reconnects: 495, reconnectsWithGreeting: 200 },
}

describe('what a rate means', () => {
  test.each([
    ['more than the reference could do', near, 60_000, 'more than one at a time'],
    ["the documents' 50-60 %", near, 16_500, 'as expected'],
    ['no reconnecting client is as fast', near, 12_000, 'slow'],
    ['as a reconnecting client that says nothing else', near, 9_500, 'unclear'],
    ["the documents' 25-30 %", near, 8_400, 'reconnects'],
    ['less than with all of a greeting', near, 1_000, 'slower still'],
    ['all of the reference, far away', far, 970, 'as expected'],
    ["the documents' 50 %, far away", far, 500, 'unclear'],
    ['a fifth, far away', far, 200, 'reconnects'],
  ] as const)('%s', (_, yardstick, rate, verdict) => {
    expect(verdictOf(rate, yardstick)).toBe(verdict)
  })

  test('in words', () => {
    expect(describeOwn(8_400, near)).toMatch(
      /^Your client's 8,400 commands\/s are 28.0 % of the reference. It opens a connection for each/,
    )
    expect(readingTable(near).rows).toEqual([
      ['a connection that is kept, no pipelining: normal', '50-60 %', '80.0 %', '24,000'],
      ['a connection for each command', '25-30 %', '10.0 % to 30.0 %', '3,000 to 9,000'],
    ])
  })
})

test.each([
  [{ commands: 3, connections: 1 }, 'Too few to tell anything'],
  [{ commands: 3_000, connections: 2 }, 'They keep their connections'],
  [{ commands: 3_000, connections: 20 }, 'Few of them connect anew'],
  [{ commands: 3_000, connections: 600 }, 'a connection for every 5.00 commands'],
])('what others do: %o', (counts, words) => {
  expect(describeOthers({ seconds: 3, ...counts })).toContain(words)
  expect(describeOthers(null)).toContain('may not call INFO')
})

test('knows that no port is left, in the words of Node and of C', () => {
  expect(isOutOfPorts(new Error('connect EADDRNOTAVAIL 127.0.0.1:1'))).toBe(true)
  expect(isOutOfPorts(new Error('Could not connect: Cannot assign requested address'))).toBe(true)
  expect(isOutOfPorts(new Error('connect ECONNREFUSED'))).toBe(false)
  expect(isOutOfPorts(null)).toBe(false)
})

test('a run without an answer has no figures, and its error is told', () => {
  const failed = { calls: 0, perSecond: null }
  const error = 'connect EADDRNOTAVAIL'
  const runs: Record<string, { calls: number; perSecond: number | null }[]> = {
    raw: [100, 200].map((perSecond) => ({ calls: 10, perSecond })),
    ioredis: [{ calls: 10, perSecond: 50 }, failed],
    reconnect: [failed, failed],
  }
  const samples = Object.entries(runs).flatMap(([name, list]) =>
    list.map((values, index) => ({
      ...{ case: { client: name }, round: index + 1, values },
      ...(values.calls === 0 && { errors: { [error]: 1 } }),
    })),
  )
  const rows = Rows.of(client, samples)
  const base = rows.find({ client: 'raw' })
  const shares = rows.all.map((row) => row.ratio('perSecond', base)?.median)
  expect(shares).toEqual([undefined, 0.5, undefined])
  expect(yardstickOf(rows)).toBeNull()
  const claims = client.claims(rows, { options: {}, software: {} } as never)
  expect(claims.filter(Boolean).join('\n')).toMatch(
    /^ioredis ended early: connect EADDRNOTAVAIL\n.*\nThere was no port left.*\nThe reference is a plain socket/,
  )
})

describe('addresses and passwords', () => {
  test.each([
    ['redis://me:secret@localhost:6390/2', 'redis://localhost:6390/2'],
    ['redis://:sec/ret@@localhost', 'redis://localhost'],
    ['me:secret@localhost', 'localhost'],
    ['unix:///run/redis.sock', 'unix:///run/redis.sock'],
  ])('%s', (url, hidden) => {
    expect(hideCredentials(url)).toBe(hidden)
  })

  test('an address has no password when it is written or looked at', () => {
    const address = new Address('redis://:secret@localhost')
    expect(address.url).toBe('redis://:secret@localhost')
    for (const text of [JSON.stringify({ address }), inspect(address), `${{ ...address }}`]) {
      expect(text).not.toContain('secret')
    }
  })

  test('load goes to another machine only when the user claims it', () => {
    requireOwnHost('unix:///run/redis.sock', false)
    requireOwnHost('redis://10.0.0.1', true)
    expect(() => requireOwnHost('redis://me:secret@10.0.0.1', false)).toThrow(
      'redis://10.0.0.1 is not this machine. If it is yours to put load on, say so with --i-own-this-host.',
    )
  })
})

describe('a loop', () => {
  const close = () => undefined
  const { signal } = new AbortController()

  test('makes as many calls as it may, so many at a time', async () => {
    let waiting = 0
    let most = 0
    const call = async () => {
      most = Math.max(most, ++waiting)
      await new Promise(setImmediate)
      waiting--
    }
    const options = { width: 4, seconds: 60, maxCalls: 10, signal }
    expect(await loop({ call, close }, options)).toMatchObject({ calls: 10, error: null })
    expect(most).toBe(4)
  })

  test('ends with the first error', async () => {
    let calls = 0
    const call = async () => {
      if (++calls === 3) throw new Error('gone')
    }
    const ended = await loop({ call, close }, { seconds: 60, maxCalls: 10, signal })
    expect(ended).toMatchObject({ calls: 2, error: { message: 'gone' } })
  })

  test('is interrupted at once, although an answer is awaited', async () => {
    const interrupt = new AbortController()
    const call = () => new Promise(() => interrupt.abort(new Error('interrupted')))
    const options = { seconds: 60, maxCalls: 10, signal: interrupt.signal }
    await expect(loop({ call, close }, options)).rejects.toThrow('interrupted')
  })
})

test('commands on the wire', () => {
  expect(encode(['SET', 'ключ', 1]).toString()).toBe('*3\r\n$3\r\nSET\r\n$8\r\nключ\r\n$1\r\n1\r\n')
  const { commands, replies } = greeting(redisAddress('redis://me:secret@localhost/2').options)
  expect(commands.toString()).toBe(`${encode(['AUTH', 'me', 'secret'])}${encode(['SELECT', '2'])}`)
  expect(replies.toString()).toBe('+OK\r\n+OK\r\n')
  expect(greeting({}).commands).toHaveLength(0)
})
