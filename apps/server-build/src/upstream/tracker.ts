import type { Progress } from '../progress.ts'
import type { Role, RunRecord, Task } from './record.ts'
import { estimate, isSameTask } from './schedule.ts'

const REFRESH_MS = 1_000

/** Updates the progress line: runs done, rate, and estimated time left. */
export interface Tracker {
  begin(task: Task): void
  end(task: Task): void
  stop(): void
}

export interface TrackerOptions {
  progress: Progress
  /** The names of the builds. */
  names: Readonly<Record<Role, string>>
  /** All tasks; those in `runs` count as done. */
  tasks: readonly Task[]
  /** Runs that have ended, of these and other tasks; the caller adds to this list. */
  runs: readonly RunRecord[]
  workers: number
}

export function createTracker({ progress, names, tasks, runs, workers }: TrackerOptions): Tracker {
  const left = new Set(tasks.filter((task) => !runs.some((run) => isSameTask(run, task))))
  const running = new Set<Task>()
  const started = performance.now()
  const before = runs.length
  const refresh = () => {
    const minutes = (performance.now() - started) / 60_000
    const ended = runs.length - before
    const rate = ended > 0 ? `, ${(ended / minutes).toFixed(1)} per minute` : ''
    const remaining = Math.ceil(estimate([...left], runs, workers) / 60)
    const now = [...running].map(({ role, file }) => `${names[role]} ${file}`)
    progress.update(
      `${tasks.length - left.size} of ${tasks.length} runs${rate}, about ${remaining} min left: ${now.join(', ')}`,
    )
  }
  const timer = setInterval(refresh, REFRESH_MS)
  return {
    begin(task) {
      running.add(task)
      refresh()
    },
    end(task) {
      running.delete(task)
      left.delete(task)
      refresh()
    },
    stop: () => clearInterval(timer),
  }
}
