import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Command, Operation } from '../command.ts'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { untilServed } from '../readiness.ts'
import { operationError } from '../redis/outcomes.ts'
import { type PoolOptions, pooled } from '../redis/pool.ts'
import { Runner } from '../redis/runner.ts'

/** The commands that wait, without their timeouts. */
const waits = { disk: ['WAITAOF', 1, 0], replicas: ['WAIT', 1] } as const
type Durable = keyof typeof waits

const needs: Record<Durable, string> = {
  disk: "durable: 'disk' needs Redis 7.2 or newer, appendonly yes, appendfsync everysec or always, and the permission +waitaof",
  replicas: "durable: 'replicas' needs a replica that is connected, and the permission +wait",
}

/**
 * KEYS: janitorTasks. Redis waits for the last write of a connection. This one comes after the ends in its log, so they
 * are as durable as it is. `allow-oom`: sessions also end when memory is full.
 */
const MARK = `#!lua flags=allow-oom
return redis.call('HSET', KEYS[1], 'durable', 1)`

interface Options extends Omit<PoolOptions, 'poolSize'> {
  readonly keys: Keys
  readonly maxInFlight: number
  readonly durable: Durable
}

/** Waits until ends are durable, on a connection of its own: Redis executes nothing else on one that waits. */
export class DurableEnds {
  readonly runner: Runner
  readonly #options: Options
  readonly #confirm: Operation<number>
  /** Settles with the wait in progress. It may have begun before an end, so those that come now share the next one. */
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<number> | undefined

  constructor(options: Options) {
    const { keys, durable, deadlineMs } = options
    this.#options = options
    this.runner = new Runner(pooled({ ...options, poolSize: 1 }), options)
    // Redis gives up before the deadline: its answer is more precise.
    const wait: Command = [...waits[durable], Math.ceil(0.9 * deadlineMs)]
    this.#confirm = {
      commands: [['EVAL', MARK, 1, keys.janitorTasks()], wait],
      readOnly: false,
      read: ([, reply]) => Number([reply].flat()[0]),
    }
  }

  /** @throws StoreError as `SessionStore.ready`. */
  async ready(timeoutMs: number): Promise<void> {
    const { keys, durable } = this.#options
    await untilServed(this.runner, keys, timeoutMs)
    await this.#confirmed(this.#opened, `Redis did not confirm a write: ${needs[durable]}`)
  }

  /**
   * Ends sessions with `trips`, and waits. Also if they find none: an earlier call may have ended them without success.
   *
   * @throws StoreError `ONETRIP_NOT_DURABLE`; what `trips` throws.
   */
  async after<Result>(trips: () => Promise<Result>): Promise<Result> {
    const opened = this.#opened
    let isOver = true
    try {
      return await trips()
    } catch (error) {
      isOver = error instanceof StoreError && error.code === 'ONETRIP_UNKNOWN_SESSION'
      throw error
    } finally {
      if (isOver) await this.#confirmed(opened)
    }
  }

  get #opened(): number | undefined {
    return this.runner.sender.connections?.().opened
  }

  /** @param opened Before the end: with another connection, Redis may have restarted since then without it. */
  async #confirmed(opened: number | undefined, message?: string): Promise<void> {
    let cause: unknown
    try {
      if ((await this.#shared()) > 0 && opened === this.#opened) return
    } catch (error) {
      cause = error
    }
    throw operationError(new StoreError('ONETRIP_NOT_DURABLE', message, { cause }), false)
  }

  /** Ends of one event-loop turn, and those that come while others wait, share one wait. */
  #shared(): Promise<number> {
    this.#next ??= this.#last
      .then(() => endOfTurn())
      .then(() => {
        this.#next = undefined
        return this.runner.run(this.#confirm)
      })
    const joined = this.#next
    this.#last = joined.catch(() => undefined)
    return joined
  }
}
