import type { Task } from './record.ts'

/** How long a run takes of which nothing is known yet, in seconds. */
const TYPICAL_SECONDS = 8

/** Whether two tasks are the same. */
export function isSameTask(one: Task, other: Task): boolean {
  return (
    one.file === other.file &&
    one.ioThreads === other.ioThreads &&
    one.role === other.role &&
    one.attempt === other.attempt
  )
}

/**
 * Works tasks off, several at a time, in their order.
 *
 * @param work gets a task and the number of its worker, from 0.
 * @param goOn is asked before each task; the tasks that are left when it says no are not begun.
 * @throws the first error of `work`, when all workers have ended; no further task was begun then.
 */
export async function workOff<T>(
  tasks: readonly T[],
  workers: number,
  work: (task: T, worker: number) => Promise<void>,
  goOn: () => boolean,
): Promise<void> {
  const queue = [...tasks]
  let failed = false
  const worker = async (index: number) => {
    while (!failed && goOn()) {
      const task = queue.shift()
      if (task === undefined) return
      try {
        await work(task, index)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(
    Array.from({ length: workers }, (_, index) => worker(index)),
  )
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}

/**
 * How long some tasks will take: as long as the same file took before, or else as long as files took on
 * average.
 *
 * @returns seconds.
 */
export function estimate(
  tasks: readonly Task[],
  ended: readonly (Pick<Task, 'file'> & { seconds: number })[],
  workers: number,
): number {
  const known = new Map(ended.map(({ file, seconds }) => [file, seconds]))
  const total = ended.reduce((sum, { seconds }) => sum + seconds, 0)
  const average = ended.length > 0 ? total / ended.length : TYPICAL_SECONDS
  return tasks.reduce((sum, { file }) => sum + (known.get(file) ?? average), 0) / workers
}
