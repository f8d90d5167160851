import { expect, test } from 'vitest'
import { until } from '../src/until.ts'

test('calls until the condition holds', async () => {
  let calls = 0
  expect(await until(() => ++calls === 3, { everyMs: 1 })).toBe(true)
  expect(calls).toBe(3)
})

test('calls at least once, and returns false after the time limit', async () => {
  let calls = 0
  const never = async () => ++calls < 0
  expect(await until(never, { timeoutMs: 0 })).toBe(false)
  expect(calls).toBe(1)
  expect(await until(never, { timeoutMs: 10, everyMs: 1 })).toBe(false)
})

test('throws after an abort or an error of the condition', async () => {
  const controller = new AbortController()
  const waiting = until(() => false, { everyMs: 60_000, signal: controller.signal })
  controller.abort()
  await expect(waiting).rejects.toThrow('aborted')
  const failing = until(() => Promise.reject(new Error('oops')))
  await expect(failing).rejects.toThrow('oops')
})
