import {
  type RetentionEvent,
  type RetentionRun,
  type RetentionWork,
  retentionChannel,
} from '../diagnostics.ts'
import type { Settings } from '../options.ts'
import { type CheckedTime, clockCheck } from './check-clock.ts'
import type { RetentionContext, TaskStep } from './context.ts'
import { evict } from './evict.ts'
import { beginTask, Lock } from './lock.ts'
import { checkedJanitorOptions, type JanitorOptions } from './options.ts'
import { rescale } from './rescale.ts'
import { sweep } from './sweep.ts'

/** With batches of 100 and a run per minute, a sweep of 10,000,000 keys, logins and sessions takes three hours. */
const SWEEP_STEPS_PER_RUN = 500

interface Run {
  readonly result: RetentionRun
  readonly lock: Lock
  readonly stopped: AbortSignal
}

const NOTHING: RetentionWork = { evicted: 0, itemsDropped: 0, itemsHalved: 0, swept: 0 }
const kinds = Object.keys(NOTHING) as (keyof RetentionWork)[]

function publish(event: RetentionEvent): void {
  if (retentionChannel.hasSubscribers) retentionChannel.publish(event)
}

/** Keeps the store within its limits. Over all processes, only one janitor works at a time. */
export class Janitor {
  readonly #context: RetentionContext
  readonly #checkClock: () => Promise<CheckedTime>
  /** Read once per run, so that a clock that jumps during a run does no harm. */
  #time: CheckedTime = { now: 0, maxAhead: 0 }
  #sweep: AsyncGenerator<TaskStep> | undefined
  #current: Promise<RetentionRun> | undefined
  #stopping = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #isStarted = false

  /** @throws TypeError if an option does not exist, has a wrong type or is out of range. */
  constructor(settings: Settings, options: JanitorOptions, sweepKeys: boolean) {
    const context = { ...settings, ...checkedJanitorOptions(options, { sweepKeys }) }
    this.#checkClock = clockCheck(context)
    this.#context = { ...context, now: () => this.#time.now }
  }

  /**
   * Starts the first run at a random moment within one interval, so that processes that start together take
   * turns, and further runs after each interval. A failed run is published as an event of type `failure`; the
   * next one starts at the usual time. Does not keep the process alive.
   */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#runAfter(Math.random() * this.#context.intervalSeconds)
  }

  /** Stops after the step in progress. The janitor can be started again. */
  async stop(): Promise<void> {
    this.#isStarted = false
    clearTimeout(this.#timer)
    this.#stopping.abort()
    this.#stopping = new AbortController()
    await this.#current?.catch(() => undefined) // the caller of the run gets the error
  }

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
  runOnce(): Promise<RetentionRun> {
    const { signal } = this.#stopping
    this.#current ??= this.#context.runner
      .call(() => this.#run(signal))
      .finally(() => {
        this.#current = undefined
      })
    return this.#current
  }

  #runAfter(seconds: number): void {
    const run = async () => {
      await this.runOnce().catch((error: unknown) => publish({ type: 'failure', error }))
      if (this.#isStarted) this.#runAfter(this.#context.intervalSeconds)
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(run, 1000 * seconds).unref()
  }

  async #run(stopped: AbortSignal): Promise<RetentionRun> {
    const { runner, keys } = this.#context
    const startedAt = performance.now()
    const result = { ...NOTHING, worked: false, sweeping: false, durationMs: 0 }
    const lock = new Lock(runner, keys)
    try {
      result.worked = await lock.hold()
      if (result.worked) await this.#work({ result, lock, stopped })
    } finally {
      if (result.worked) await lock.release().catch(() => undefined) // it expires by itself
    }
    result.sweeping = this.#sweep !== undefined
    result.durationMs = performance.now() - startedAt
    publish({ type: 'run', ...result })
    return result
  }

  async #work(run: Run): Promise<void> {
    this.#time = await this.#checkClock()
    if (!(await this.#advance(run, evict(this.#context)))) return
    if (await this.#begins('rescale', this.#context.rescaleEverySeconds, false)) {
      if (!(await this.#advance(run, rescale(this.#context)))) return
    }
    if (!this.#sweep && (await this.#begins('sweep', this.#context.sweepEverySeconds, true))) {
      this.#sweep = sweep(this.#context)
    }
    if (!this.#sweep) return
    try {
      if (await this.#advance(run, this.#sweep, SWEEP_STEPS_PER_RUN)) this.#sweep = undefined
    } catch (error) {
      this.#sweep = sweep(this.#context) // the next run starts it again
      throw error
    }
  }

  /** Marks a task as started if it is due. `first`: whether a task that was never started is due. */
  async #begins(task: 'rescale' | 'sweep', everySeconds: number, first: boolean): Promise<boolean> {
    if (everySeconds === Number.POSITIVE_INFINITY) return false
    const { runner, keys } = this.#context
    return (await runner.run(beginTask(keys, task, everySeconds, this.#time))) ?? first
  }

  /** Runs steps of a task up to the limit, or until interrupted. Returns whether the task is done. */
  async #advance(
    { result, lock, stopped }: Run,
    steps: AsyncGenerator<TaskStep>,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    for (let taken = 0; taken < limit; taken++) {
      if (stopped.aborted) result.interrupted = 'stopped'
      else if (!(await lock.hold())) result.interrupted = 'lock lost'
      if (result.interrupted) return false
      const startedAt = performance.now()
      const { done, value } = await steps.next()
      if (done) return true
      for (const kind of kinds) result[kind] += value[kind] ?? 0
      publish({ type: 'step', ...NOTHING, ...value, durationMs: performance.now() - startedAt })
    }
    return false
  }
}
