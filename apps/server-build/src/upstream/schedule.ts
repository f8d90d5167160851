import type { Task } from './record.ts'

/** The assumed duration of a run before any run has ended, in seconds. */
const TYPICAL_SECONDS = 8

export function isSameTask(one: Task, other: Task): boolean {
  return (
    one.file === other.file &&
    one.ioThreads === other.ioThreads &&
    one.role === other.role &&
    one.attempt === other.attempt
  )
}

/**
 * Runs tasks in order, several in parallel.
 *
 * @param work gets a task and the number of its worker, from 0.
 * @param shouldContinue called before each task; if it returns false, no further task starts.
 * @throws the first error of `work`, after all workers have ended. No task starts after an error.
 */
export async function runQueue<T>(
  tasks: readonly T[],
  workers: number,
  work: (task: T, worker: number) => Promise<void>,
  shouldContinue: () => boolean,
): Promise<void> {
  const queue = [...tasks]
  let failed = false
  const worker = async (index: number) => {
    while (!failed && shouldContinue()) {
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
 * Estimates the duration of tasks: the last duration of the same file, or the average of all files.
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
