import fc from 'fast-check'
import { expect, test } from 'vitest'
import { articleKeys as keys } from '../src/core/keys.ts'
import type { Command, CommandList } from '../src/core/operation.ts'
import { merge } from '../src/core/sending/merge.ts'
import { checkToken, endSessions } from '../src/core/sessions/session-operations.ts'
import { recordView } from '../src/core/sessions/view-operations.ts'

const view = (id: string, item: string, seconds: number) =>
  recordView(keys, { id, item }, 1000 * seconds)

test('views are merged into one command for each key or item', () => {
  const { commands } = merge([view('a', 'book', 1), view('b', 'book', 2), view('a', 'pen', 3)])
  expect(commands).toEqual([
    ['ZADD', 'recent:', 'XX', 1, 'a', 2, 'b', 3, 'a'],
    ['ZADD', 'viewed:a', 1, 'book', 3, 'pen'],
    ['ZADD', 'viewed:b', 2, 'book'],
    ['ZREMRANGEBYRANK', 'viewed:a', 0, -26],
    ['ZREMRANGEBYRANK', 'viewed:b', 0, -26],
    ['ZINCRBY', 'viewed:', -2, 'book'],
    ['ZINCRBY', 'viewed:', -1, 'pen'],
    ['HMGET', 'login:', 'a', 'b', 'a'],
  ])
})

const bits = (key: string, ...offsets: number[]): CommandList => ({
  commands: [
    ...offsets.map((offset): Command => ['SETBIT', key, offset, 1]),
    ['BITCOUNT', key],
    ['EXPIRE', key, 60],
  ],
  mergeable: true,
})

test('SETBIT commands of a key become one BITFIELD, and equal commands are sent once', () => {
  const { commands, split } = merge([bits('a', 7, 9), bits('b', 1, 2), bits('a', 8, 9)])
  expect(commands).toEqual([
    ['BITFIELD', 'a', 'SET', 'u1', 7, 1, 'SET', 'u1', 8, 1],
    ['SETBIT', 'b', 1, 1],
    ['BITFIELD', 'a', 'SET', 'u1', 9, 1, 'SET', 'u1', 9, 1],
    ['SETBIT', 'b', 2, 1],
    ['BITCOUNT', 'a'],
    ['BITCOUNT', 'b'],
    ['EXPIRE', 'a', 60],
    ['EXPIRE', 'b', 60],
  ])
  expect(split([[1, 0], 0, [0, 1], 1, 3, 2, 1, 1])).toEqual([
    [1, 0, 3, 1],
    [0, 1, 2, 1],
    [0, 1, 3, 1],
  ])
})

test.each([
  [['SETBIT', 'a', 2 ** 32, 1]],
  [['SETBIT', 'a', 1, 2]],
  [['EXPIRE', 'a', 60, 'NX']],
  [['BITCOUNT', 'a', 0, 1]],
])('%j, which Redis could refuse, is not merged', (command) => {
  const operation = { commands: [command as unknown as Command], mergeable: true }
  expect(merge([operation, operation]).commands).toEqual([command, command])
})

test.each([
  [0.1, 0.2],
  [1e308, -1e308],
  [Number.MAX_SAFE_INTEGER, 1],
])('increments by %d and %d, whose sum may be inexact, are not merged', (...increments) => {
  const operations = increments.map((by) => ({
    commands: [['ZINCRBY', 'scores', by, 'ada'] as const],
    mergeable: true,
  }))
  expect(merge(operations).commands).toEqual(operations.flatMap(({ commands }) => commands))
})

test('commands of an operation that is not mergeable stay as they are', () => {
  const own = [['ZADD', 'recent:', 'XX', 9, 'a']] as const
  const { commands, split } = merge([view('a', 'book', 1), { commands: own }, { commands: own }])
  expect(commands.filter(([name]) => name === 'ZADD')).toEqual([
    ['ZADD', 'recent:', 'XX', 1, 'a'],
    ['ZADD', 'viewed:a', 1, 'book'],
    ...own,
    ...own,
  ])
  expect(split([0, 1, 0, '-1', 'ada', 7, 8])).toEqual([[0, 1, 0, '-1', 'ada'], [7], [8]])
})

test('the commands of each operation keep their order, and none is lost or added', () => {
  const id = fc.constantFrom('a', 'b', 'c')
  const operation = fc.oneof(
    fc.tuple(id, fc.constantFrom('book', 'pen')).map(([id, item]) => view(id, item, 1)),
    id.map((id) => endSessions(keys, [id])),
    id.map((id) => checkToken(keys, id)),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 12 }), (operations) => {
      const { commands, split } = merge(operations)
      // Each reply is the position of its command, so that the test can compare positions.
      const owned = split(commands.map((command, place) => (command[0] === 'HMGET' ? [] : place)))
      expect(owned.map(({ length }) => length)).toEqual(
        operations.map(({ commands }) => commands.length),
      )
      for (const outcomes of owned) {
        const places = outcomes.filter((outcome) => typeof outcome === 'number')
        expect(places).toEqual(places.toSorted((a, b) => a - b))
      }
      const members = (name: string) =>
        operations.flatMap(({ commands }) => commands).filter(([command]) => command === name)
          .length
      const asked = commands.filter(([name]) => name === 'HGET' || name === 'HMGET')
      const hgets = asked.reduce((sum, command) => sum + command.length - 2, 0)
      expect(hgets).toBe(members('HGET'))
    }),
  )
})
