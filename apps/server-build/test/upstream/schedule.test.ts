import { expect, test } from 'vitest'
import type { Task } from '../../src/upstream/record.ts'
import { estimate, runQueue } from '../../src/upstream/schedule.ts'

test('runs tasks in order, with at most one per worker', async () => {
  const order: number[] = []
  const busy = new Set<number>()
  let most = 0
  await runQueue(
    [1, 2, 3, 4, 5],
    2,
    async (task, worker) => {
      expect(busy.has(worker), 'a worker runs one task at a time').toBe(false)
      busy.add(worker)
      most = Math.max(most, busy.size)
      order.push(task)
      await Promise.resolve()
      busy.delete(worker)
    },
    () => true,
  )
  expect(order).toEqual([1, 2, 3, 4, 5])
  expect(most).toBe(2)
})

test('starts no further task when the time is over or after an error', async () => {
  const begun: number[] = []
  const begin = async (task: number) => {
    begun.push(task)
    if (task === 4) throw new Error('broken')
  }
  await runQueue([1, 2, 3], 1, begin, () => begun.length < 2)
  expect(begun).toEqual([1, 2])
  await expect(runQueue([4, 5], 1, begin, () => true)).rejects.toThrow('broken')
  expect(begun).toEqual([1, 2, 4])
})

test('estimates by the last duration of a file, otherwise by the average', () => {
  const task = (file: string): Task => ({ file, ioThreads: 1, role: 'candidate', attempt: 0 })
  const ended = [
    { file: 'a', seconds: 10 },
    { file: 'b', seconds: 20 },
  ]
  expect(estimate([task('a'), task('c')], ended, 1)).toBe(10 + 15)
  expect(estimate([task('a'), task('c')], ended, 2)).toBe((10 + 15) / 2)
  expect(estimate([], ended, 2)).toBe(0)
})
