import { expect, test } from 'vitest'
import { settlesWithin } from '../src/settles-within.ts'

const never = new Promise<never>(() => {})

test('returns whether a promise resolves in time', async () => {
  expect(await settlesWithin(Promise.resolve(), 60_000)).toBe(true)
  expect(await settlesWithin(never, 1)).toBe(false)
})

test('rejects if the promise rejects, and leaves no unhandled rejection', async () => {
  await expect(settlesWithin(Promise.reject(new Error('oops')), 60_000)).rejects.toThrow('oops')
  const { promise, reject } = Promise.withResolvers<void>()
  expect(await settlesWithin(promise, 1)).toBe(false)
  reject(new Error('too late'))
  await new Promise(setImmediate)
})

test('leaves no timer that keeps the process alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  await settlesWithin(Promise.resolve(), 60_000)
  expect(timers()).toBe(before)
})
