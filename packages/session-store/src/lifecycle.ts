import type { Operation } from './command.ts'
import type { StoreContext } from './context.ts'
import { checkNumber, checkOperation, checkStrings, MAX_TIMEOUT_MS } from './input.ts'
import { type Attempts, countAttempts } from './operations/attempts.ts'
import { checkKeyTypes } from './operations/key-types.ts'
import type { SessionStoreOptions } from './options.ts'
import { checkPartitionsAtStart } from './partitions.ts'
import { warnOfEviction } from './redis/eviction.ts'
import { type NodeState, pingNodes, runOnEach, untilServed } from './redis/nodes.ts'
import type { NodeResult } from './redis/runner.ts'
import { createJanitor, type Janitor } from './retention/janitor.ts'
import { type JanitorOptions, ownJanitor } from './retention/janitor-options.ts'
import { requirePublish } from './sessions/session-ends.ts'

export interface StoreInfo {
  /** The name of the sender: `batch`, or that of the one passed as `sender`. */
  sender: string
  /** Connections, up or not; 0 if there are none between two operations. */
  connections: number
  /** Connections that are up. */
  ready: number
  /** Operations that are waiting for replies. */
  inFlight: number
}

/** The functions of the store that are no calls: its state, its janitors and its end. */
export function lifecycleFunctions(context: StoreContext, options: SessionStoreOptions) {
  const { runner, keys, now } = context
  const { sender } = runner
  const active = new Set<Janitor>()
  const janitor = (limits: JanitorOptions = {}): Janitor =>
    createJanitor(
      { ...context, now: () => now() / 1000, sweepKeys: Boolean(options.prefix), active },
      limits,
    )

  try {
    sender.topology?.checkKeys(keys)
    const own = ownJanitor(options.janitor, context)
    if (own !== undefined) janitor(own).start()
  } catch (error) {
    // An injected client must not keep the store's listeners: they would hide its errors.
    if (sender !== options.sender) void sender.close()
    throw error
  }

  return {
    /** How operations are sent, and the state of the connections. */
    get info(): StoreInfo {
      const { connections = 0, ready = 0 } = sender.connections?.() ?? {}
      const { inFlight } = runner
      return { sender: sender.name, connections, ready, inFlight }
    },

    /**
     * Creates another janitor, which you start or run yourself. A janitor ends sessions that are idle or beyond
     * the maximum, rescales the item counts and removes leftovers. There may be several in any number of
     * processes; only one works at a time. Create it once: it holds the position of an unfinished sweep. Needs Redis
     * 7.0 or newer.
     *
     * @throws TypeError for an option that does not exist, has a wrong type or is out of range.
     */
    janitor,

    /**
     * Graceful shutdown: stops the janitors, waits for the calls in flight with all their round trips, at most
     * for `deadlineMs`, then closes all connections. Calls that start meanwhile are rejected.
     */
    async close(): Promise<void> {
      for (const janitor of active) void janitor.stop()
      await runner.close()
    },
  }
}

/** The functions of the store for its start and health, and for your own operations. */
export function serverFunctions(context: StoreContext) {
  const { runner, keys, now, deadlineMs } = context
  const { sender } = runner

  return {
    /**
     * Runs your own operation. Its commands share round trips with other calls, and have the same deadline and
     * errors. The first argument of a command must be its key; scripts and functions state the number of keys.
     *
     * @throws StoreError `ONETRIP_NOT_SENT`, `ONETRIP_OVERLOADED`, `ONETRIP_OUTCOME_UNKNOWN` or
     *   `ONETRIP_REFUSED`; `ONETRIP_INVALID_INPUT` for commands that block or change the shared connection.
     */
    async run<Result>(operation: Operation<Result>): Promise<Result> {
      checkOperation(operation)
      return await runner.run(operation)
    },

    /**
     * Counts an attempt, such as a login, for each of `subjects` (any text, such as a user or an address), over
     * all processes, in fixed windows of `windowSeconds`, a whole number. The caller decides what to reject. One
     * round trip.
     */
    async countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts> {
      checkStrings('subjects', subjects)
      checkNumber('windowSeconds', windowSeconds, { min: 1, max: 1e9, integer: true })
      return await runner.run(countAttempts(keys, { subjects, windowSeconds }, now()))
    },

    /**
     * Resolves once Redis is ready. Checks the types of the keys that all sessions share (logins, last-seen times,
     * item counts), if the user of Redis may read them. Warns (`onetrip:warning`) if Redis may evict sessions. With
     * partitioned keys, the first start records the number of partitions in Redis, and every start compares it.
     *
     * @param timeoutMs At most a day. Default 10,000.
     * @throws StoreError `ONETRIP_NOT_SENT` if Redis is not ready after `timeoutMs`; `ONETRIP_REFUSED` if it refuses
     *   the store's keys, or to publish the end of sessions (NOPERM); `ONETRIP_INVALID_INPUT` if the data in Redis has
     *   another number of partitions, or if one of these keys belongs to another program.
     */
    async ready(timeoutMs = 10_000): Promise<void> {
      checkNumber('timeoutMs', timeoutMs, { min: 0, max: MAX_TIMEOUT_MS })
      await untilServed(context, timeoutMs)
      await checkKeyTypes(context)
      await requirePublish(context)
      const isPartitioned = sender.topology !== undefined || keys.parts().length > 1
      if (isPartitioned) await checkPartitionsAtStart(context)
      await warnOfEviction(runner)
    },

    /**
     * Checks whether Redis serves the store's keys. Returns one entry for each server that holds keys: each primary of a
     * cluster, otherwise one server. A server that has not replied after `timeoutMs` (default: the deadline) has
     * an `error`.
     *
     * @throws StoreError if no server serves its keys.
     */
    async ping(timeoutMs = deadlineMs): Promise<NodeState[]> {
      checkNumber('timeoutMs', timeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
      return await pingNodes(context, timeoutMs)
    },

    /**
     * Runs a read-only operation without keys, such as INFO, on each server that holds keys: each primary of a
     * cluster, otherwise one server. A server that fails has an `error` instead of a `result`.
     *
     * @throws StoreError as `run`, if the servers are not known.
     */
    async runOnEach<Result>(operation: Operation<Result>): Promise<NodeResult<Result>[]> {
      checkOperation(operation)
      return await runOnEach(runner, { ...operation, readOnly: true }, deadlineMs)
    },
  }
}
