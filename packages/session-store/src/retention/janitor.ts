import {
  type RetentionEvent,
  type RetentionRun,
  type RetentionWork,
  retentionChannel,
} from '../diagnostics.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../redis/runner.ts'
import { type CheckedTime, clockCheck } from './clock-check.ts'
import { beginTask, type JanitorLock, janitorLock } from './janitor-lock.ts'
import { checkedJanitorOptions, type JanitorOptions } from './janitor-options.ts'
import { evict, type RetentionContext, rescale, type TaskStep } from './retention-tasks.ts'
import { sweep } from './sweep.ts'

/** Keeps the store within its limits. Over all processes, only one janitor works at a time. */
export interface Janitor {
  /**
   * Starts the first run at a random moment within one interval, so that processes that start together take
   * turns, and further runs after each interval. A failed run is published as an event of type `failure`; the
   * next one starts at the usual time. Does not keep the process alive.
   */
  start(): void
  /** Stops after the step in progress. The janitor can be started again. */
  stop(): Promise<void>
  /**
   * One run: ends sessions until the limits hold, and rescales the item counts if due. Then it starts the sweep if
   * due, or continues an unfinished one, for at most 500 steps. Joins a run that is in progress. First it compares the
   * clock of this process with that of Redis (`maxClockSkewSeconds`).
   *
   * This object holds the position of an unfinished sweep, and the next sweep is due only after `sweepEverySeconds`:
   * call `runOnce` of the same janitor until `sweeping` is false.
   *
   * @throws StoreError with the codes of `SessionStore.run`; `ONETRIP_INVALID_INPUT` if the clocks differ too much,
   *   and the run has changed nothing.
   */
  runOnce(): Promise<RetentionRun>
}

/** With batches of 100 and a run per minute, a sweep of 10,000,000 keys, logins and sessions takes three hours. */
const SWEEP_STEPS_PER_RUN = 500

interface JanitorContext {
  runner: Runner
  keys: Keys
  /** Unix seconds with fraction. */
  now: () => number
  /** Defaults of the janitor's options. */
  idleSeconds: number
  sweepKeys: boolean
  /** Contains the janitor while it is started or a run is in progress. */
  active: Set<Janitor>
}

/** @throws TypeError if an option does not exist, has a wrong type or is out of range. */
export function createJanitor(
  { runner, keys, now, active, idleSeconds, sweepKeys }: JanitorContext,
  options: JanitorOptions,
): Janitor {
  const checked = checkedJanitorOptions(options, { idleSeconds, sweepKeys })
  const { intervalSeconds, rescaleEverySeconds, sweepEverySeconds, lockSeconds } = checked
  const checkClock = clockCheck({ runner, keys, now, ...checked })
  // Read once per run, so that a clock that jumps during a run does no harm.
  let time: CheckedTime
  const context: RetentionContext = { runner, keys, now: () => time.seconds, ...checked }

  let current: Promise<RetentionRun> | undefined
  let stopping = new AbortController()
  let loop: Loop | undefined
  let sweepInProgress: AsyncGenerator<TaskStep> | undefined

  function publish(event: RetentionEvent): void {
    if (retentionChannel.hasSubscribers) retentionChannel.publish(event)
    options.onProgress?.(event)
  }

  async function run(stopped: AbortSignal): Promise<RetentionRun> {
    runner.begin()
    try {
      return await lockedRun(stopped)
    } finally {
      runner.end()
    }
  }

  async function lockedRun(stopped: AbortSignal): Promise<RetentionRun> {
    const startedAt = performance.now()
    const result = { ...NOTHING, worked: false, sweeping: false, durationMs: 0 }
    const lock = janitorLock(runner, keys, lockSeconds)
    result.worked = await lock.acquire()
    if (result.worked) {
      try {
        await work({ result, lock, stopped })
      } finally {
        await lock.release().catch(() => undefined) // it expires by itself
      }
    }
    result.sweeping = sweepInProgress !== undefined
    result.durationMs = performance.now() - startedAt
    publish({ type: 'run', ...result })
    return result
  }

  async function work(run: Run): Promise<void> {
    time = await checkClock()
    if (!(await advance(run, evict(context)))) return
    if (await begins('rescale', rescaleEverySeconds, { first: false })) {
      if (!(await advance(run, rescale(context)))) return
    }
    if (!sweepInProgress && (await begins('sweep', sweepEverySeconds, { first: true }))) {
      sweepInProgress = sweep(context)
    }
    if (!sweepInProgress) return
    try {
      if (await advance(run, sweepInProgress, SWEEP_STEPS_PER_RUN)) sweepInProgress = undefined
    } catch (error) {
      sweepInProgress = sweep(context) // the next run starts it again
      throw error
    }
  }

  /** Marks a task as started if it is due. `first`: whether a task that was never started is due. */
  async function begins(task: Task, everySeconds: number, { first }: { first: boolean }) {
    if (everySeconds === Number.POSITIVE_INFINITY) return false
    return (await runner.run(beginTask(keys, { task, everySeconds }, time))) ?? first
  }

  /** Runs steps of a task up to the limit, or until interrupted. Returns whether the task is done. */
  async function advance(
    { result, lock, stopped }: Run,
    steps: AsyncGenerator<TaskStep>,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    for (let taken = 0; taken < limit; taken++) {
      if (stopped.aborted) result.interrupted = 'stopped'
      else if (!(await lock.held())) result.interrupted = 'lock lost'
      if (result.interrupted) return false
      const startedAt = performance.now()
      const { done, value } = await steps.next()
      if (done) return true
      for (const kind of kinds) result[kind] += value[kind] ?? 0
      publish({ type: 'step', ...NOTHING, ...value, durationMs: performance.now() - startedAt })
    }
    return false
  }

  function runOnce(): Promise<RetentionRun> {
    active.add(janitor)
    current ??= run(stopping.signal).finally(() => {
      current = undefined
      removeIfIdle()
    })
    return current
  }

  function removeIfIdle(): void {
    if (!loop && !current) active.delete(janitor)
  }

  async function stop(): Promise<void> {
    clearTimeout(loop?.timer)
    loop = undefined
    stopping.abort()
    stopping = new AbortController()
    removeIfIdle()
    await current?.catch(() => undefined) // the caller of the run gets the error
  }

  function start(): void {
    if (loop) return
    const own: Loop = {}
    loop = own
    active.add(janitor)
    const beginAfter = (seconds: number) => {
      own.timer = setTimeout(begin, seconds * 1000).unref()
    }
    const begin = async () => {
      await runOnce().catch(fail)
      if (loop === own) beginAfter(intervalSeconds)
    }
    beginAfter(Math.random() * intervalSeconds)
  }

  function fail(error: unknown): void {
    try {
      publish({ type: 'failure', error })
    } catch {
      // `onProgress` threw. The event is on the channel; the loop continues.
    }
  }

  const janitor: Janitor = { start, stop, runOnce }
  return janitor
}

type Task = 'rescale' | 'sweep'

interface Loop {
  timer?: NodeJS.Timeout
}

interface Run {
  readonly result: RetentionRun
  readonly lock: JanitorLock
  readonly stopped: AbortSignal
}

const NOTHING: RetentionWork = { evicted: 0, itemsDropped: 0, itemsHalved: 0, swept: 0 }
const kinds = Object.keys(NOTHING) as (keyof RetentionWork)[]
