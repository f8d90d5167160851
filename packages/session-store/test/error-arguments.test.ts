import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { StoreError } from '../src/index.ts'

class ReplyError extends Error {
  override get name() {
    return 'ReplyError'
  }
  command = { name: 'set', args: ['a-secret-key', 'a-secret-value'] }
}

const unknownCommand = "ERR unknown command 'NOSUCH', with args beginning with: 'a-secret-key' "

/** Every error inside it, and every property. */
function snapshot(value: unknown, seen = new Map<unknown, unknown>()): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (seen.has(value)) return seen.get(value)
  const copy: Record<string | symbol, unknown> = {}
  seen.set(value, copy)
  for (const key of Reflect.ownKeys(value)) copy[key] = snapshot(Reflect.get(value, key), seen)
  return copy
}

const causeOf = (cause: unknown) => new StoreError('ONETRIP_NOT_SENT', 'not sent', { cause }).cause

test('a cause that is no error, or an error of the store, is the cause itself', () => {
  const inner = new StoreError('ONETRIP_NOT_SENT')
  for (const other of ['text', 42, null, { args: ['kept'] }, inner]) {
    expect(causeOf(other)).toBe(other)
  }
  const copy = causeOf(new AggregateError([inner])) as AggregateError
  expect(copy.errors[0]).toBe(inner)
})

const withArguments: [string, () => Error][] = [
  ['a command', () => new ReplyError('WRONGTYPE')],
  ['a message', () => new Error(unknownCommand)],
  ['a cause', () => new Error('a', { cause: new ReplyError() })],
  ['a list', () => new AggregateError([new Error('a'), new ReplyError('b')])],
  ['a property', () => Object.assign(new Error('a'), { lastNodeError: new Error(unknownCommand) })],
  [
    'a cycle',
    () => {
      const [first, second] = [new Error('a'), new ReplyError('b')]
      return Object.assign(first, { cause: Object.assign(second, { cause: first }) })
    },
  ],
]

test.each(withArguments)(
  'hides the arguments in %s, and leaves the error as it is',
  (_, create) => {
    const error = create()
    const before = snapshot(error)
    const cause = causeOf(error) as Error
    expect(inspect(cause, { depth: null, showHidden: true })).not.toContain('a-secret')
    expect(snapshot(error)).toEqual(before)
    expect(Object.getPrototypeOf(cause)).toBe(Object.getPrototypeOf(error))
  },
)

test('the copy keeps class, name, code, stack and inner errors', () => {
  const inner = Object.assign(new ReplyError(unknownCommand), { code: 'EX', node: 'a:1' })
  const error = new AggregateError([inner], 'several', { cause: 'text' })
  const cause = causeOf(error) as AggregateError
  expect(cause).toBeInstanceOf(AggregateError)
  expect(cause).toMatchObject({ message: 'several', stack: error.stack, cause: 'text' })
  const [copy] = cause.errors
  expect(copy).toBeInstanceOf(ReplyError)
  expect(Error.isError(copy)).toBe(true)
  expect({ ...copy }).toEqual({ code: 'EX' })
  expect(copy).toMatchObject({ name: 'ReplyError', message: "ERR unknown command 'NOSUCH'" })
  expect(copy.stack).toBe(inner.stack?.replace(unknownCommand, copy.message))
})
