import {
  type RetentionEvent,
  type RetentionRun,
  type RetentionWork,
  retentionChannel,
} from '../diagnostics.ts'
import { checkFunctions, checkOptions } from '../input.ts'
import type { Keys } from '../keys.ts'
import { checkOptionNames, type NamesOf } from '../option-names.ts'
import { checkRange as check } from '../range.ts'
import type { Runner } from '../runner.ts'
import { beginTask, type JanitorLock, janitorLock } from './janitor-lock.ts'
import { evict, type RetentionContext, rescale, type TaskStep } from './retention-tasks.ts'
import { sweep } from './sweep.ts'

export interface JanitorOptions {
  /** Maximum number of sessions. The least recently seen end first. Default 10,000,000. */
  maxSessions?: number
  /** Idle timeout of sessions. Default: the store's `idleSeconds`. */
  idleSeconds?: number
  /**
   * Pause between two runs, at most a day. Until the next run, a view can still refresh an idle session. Default
   * 60.
   */
  intervalSeconds?: number
  /** Maximum number of entries that one command removes or changes, 1 to 1,000. Default 100. */
  batchSize?: number
  /**
   * How many items, the most viewed, a rescaling keeps. Default 20,000, as in Redis in Action: far more than
   * `popularItems` returns, so that new items can rise.
   */
  keptItems?: number
  /**
   * How often item counts are halved, so that old views count less. All processes share the period, which starts
   * with the first run ever. `Infinity`: never. Default one day.
   */
  rescaleEverySeconds?: number
  /** How often leftovers are swept, over all processes. `Infinity`: never. Default one day. */
  sweepEverySeconds?: number
  /** Lifetime of the lock: how long other processes wait after a working janitor has died. Default 30. */
  lockSeconds?: number
  /** Stops the janitor, as `stop()` does. */
  signal?: AbortSignal
  /** Called with each event of the diagnostics channel `onetrip:retention`. */
  onProgress?: (event: RetentionEvent) => void
}

const optionNames: NamesOf<JanitorOptions> = {
  maxSessions: true,
  idleSeconds: true,
  intervalSeconds: true,
  batchSize: true,
  keptItems: true,
  rescaleEverySeconds: true,
  sweepEverySeconds: true,
  lockSeconds: true,
  signal: true,
  onProgress: true,
}

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
   * due, or continues an unfinished one, for at most 500 steps. Joins a run that is in progress.
   *
   * This object holds the position of an unfinished sweep, and the next sweep is due only after `sweepEverySeconds`:
   * call `runOnce` of the same janitor until `sweeping` is false.
   *
   * @throws StoreError with the codes of `SessionStore.run`; the signal's reason if it was aborted.
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
  idleSeconds: number
  /** Contains the janitor while it is started or a run is in progress. */
  active: Set<Janitor>
}

/** @throws TypeError if an option does not exist, has a wrong type or is out of range. */
export function createJanitor(
  { runner, keys, now, idleSeconds, active }: JanitorContext,
  options: JanitorOptions,
): Janitor {
  checkOptions('a janitor', options)
  checkOptionNames('a janitor', options, optionNames)
  const {
    intervalSeconds = 60,
    rescaleEverySeconds = 86_400,
    sweepEverySeconds = 86_400,
    lockSeconds = 30,
    signal,
    onProgress,
  } = options
  const context: RetentionContext = {
    runner,
    keys,
    now,
    maxSessions: options.maxSessions ?? 10_000_000,
    idleSeconds: options.idleSeconds ?? idleSeconds,
    batchSize: options.batchSize ?? 100,
    keptItems: options.keptItems ?? 20_000,
  }
  check('maxSessions', context.maxSessions, { min: 0, integer: true })
  check('idleSeconds', context.idleSeconds, { min: 0 })
  check('intervalSeconds', intervalSeconds, { min: 0.001, max: 86_400 })
  check('batchSize', context.batchSize, { min: 1, max: 1_000, integer: true })
  check('keptItems', context.keptItems, { min: 0, integer: true })
  check('rescaleEverySeconds', rescaleEverySeconds, { min: 0 })
  check('sweepEverySeconds', sweepEverySeconds, { min: 0 })
  check('lockSeconds', lockSeconds, { min: 0.1, max: 86_400 })
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError('signal must be an AbortSignal')
  }
  if (onProgress !== undefined) checkFunctions('the janitor', options, ['onProgress'])

  let current: Promise<RetentionRun> | undefined
  let stopping = new AbortController()
  let loop: Loop | undefined
  let sweepInProgress: AsyncGenerator<TaskStep> | undefined

  function publish(event: RetentionEvent): void {
    if (retentionChannel.hasSubscribers) retentionChannel.publish(event)
    onProgress?.(event)
  }

  async function run(stopped: AbortSignal): Promise<RetentionRun> {
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
    return (await runner.run(beginTask(keys, { task, everySeconds }, now()))) ?? first
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
    if (signal?.aborted) return Promise.reject(signal.reason as Error)
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
    if (loop || signal?.aborted) return
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

  signal?.addEventListener('abort', () => void stop(), { once: true })
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
