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
  /** Sessions beyond it end, those that were seen longest ago first. Default 10,000,000. */
  maxSessions?: number
  /** A session that was not seen for so long ends. Default: the store's `idleSeconds`. */
  idleSeconds?: number
  /**
   * From the end of one run to the beginning of the next. At most a day. Default 60. A view refreshes
   * an idle session until the run that ends it.
   */
  intervalSeconds?: number
  /** What one command removes or changes at the most, 1 to 1,000. Default 100. */
  batchSize?: number
  /**
   * Item counts that a rescaling keeps: the most viewed. Default 20,000, as in Redis in Action: far
   * more than anybody lists, so that an item has room to rise.
   */
  keptItems?: number
  /**
   * How often item counts are halved, so that old views weigh less. The period is shared by all
   * processes and begins with the first run ever. `Infinity`: never. Default one day.
   */
  rescaleEverySeconds?: number
  /** How often leftovers are looked for, over all processes. `Infinity`: never. Default one day. */
  sweepEverySeconds?: number
  /** How long other processes wait for one that died at work. Default 30. */
  lockSeconds?: number
  /** Stops the janitor, as `stop()` does. */
  signal?: AbortSignal
  /** Is told what the diagnostics channel `onetrip:retention` is told. */
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

/** Keeps the store within its limits. One works at a time, over all processes. */
export interface Janitor {
  /**
   * Begins a run within one interval, at a random moment so that processes that start together take
   * turns, and another after each interval. A run that fails is published as an event of type
   * `failure`; the next one begins as planned. Keeps no process alive.
   */
  start(): void
  /** Waits for the step in progress; nothing runs afterwards. It can be started again. */
  stop(): Promise<void>
  /**
   * One run: ends sessions until the limits hold, rescales the item counts when that is due, and goes
   * on with the sweep when that is due, for at most 500 steps. Joins a run that is in progress.
   *
   * @throws StoreError of the codes that `SessionStore.run` throws; the signal's reason when it was aborted.
   */
  runOnce(): Promise<RetentionRun>
}

/** With batches of 100: about 10,000,000 keys, logins and sessions in three hours at every minute. */
const SWEEP_STEPS_PER_RUN = 500

interface JanitorParts {
  runner: Runner
  keys: Keys
  /** Unix seconds with fraction. */
  now: () => number
  idleSeconds: number
}

/** @throws TypeError for an option that is out of its range. */
export function createJanitor(parts: JanitorParts, options: JanitorOptions): Janitor {
  const { runner, keys, now } = parts
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
    idleSeconds: options.idleSeconds ?? parts.idleSeconds,
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

  function tell(event: RetentionEvent): void {
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
    tell({ type: 'run', ...result })
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
      sweepInProgress = sweep(context) // the next run begins it again
      throw error
    }
  }

  /** Marks a task as begun if it is due; `first`: whether it is when it was never begun before. */
  async function begins(task: Task, everySeconds: number, { first }: { first: boolean }) {
    if (everySeconds === Number.POSITIVE_INFINITY) return false
    return (await runner.run(beginTask(keys, { task, everySeconds }, now()))) ?? first
  }

  /** Takes steps of a task for as long as it may. True when the task is done. */
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
      tell({ type: 'step', ...NOTHING, ...value, durationMs: performance.now() - startedAt })
    }
    return false
  }

  function runOnce(): Promise<RetentionRun> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error)
    current ??= run(stopping.signal).finally(() => {
      current = undefined
    })
    return current
  }

  async function stop(): Promise<void> {
    clearTimeout(loop?.timer)
    loop = undefined
    stopping.abort()
    stopping = new AbortController()
    await current?.catch(() => undefined) // told to whoever began it
  }

  function start(): void {
    if (loop || signal?.aborted) return
    const own: Loop = {}
    loop = own
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
      tell({ type: 'failure', error })
    } catch {
      // `onProgress` threw, perhaps the error itself. The channel has been told; the loop goes on.
    }
  }

  signal?.addEventListener('abort', () => void stop(), { once: true })
  return { start, stop, runOnce }
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
