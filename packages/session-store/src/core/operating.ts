import { warnOfEviction } from './connections/eviction.ts'
import type { StoreContext } from './context.ts'
import { checkBoolean, checkNumber, checkStrings, checkUpdate, MAX_TIMEOUT_MS } from './input.ts'
import { checkKeyTypes } from './key-types.ts'
import type { Update } from './operations.ts'
import { checkPartitionsAtStart } from './partitions.ts'
import { createJanitor, type Janitor } from './retention/janitor.ts'
import { type JanitorOptions, ownJanitor } from './retention/janitor-options.ts'
import { type NodeState, pingNodes, runOnEach, untilServed } from './sending/nodes.ts'
import type { NodeResult } from './sending/runner.ts'
import { type Attempts, countAttempts } from './sessions/attempts.ts'
import type { SessionStoreOptions } from './store-options.ts'
import type { StoreInfo } from './store-types.ts'

/** The functions of the store for its operation: start, health, janitor, end, and your own updates. */
export function operatingFunctions(context: StoreContext, options: SessionStoreOptions) {
  const { runner, keys, now, deadlineMs } = context
  const { sender } = runner
  const strategy = options.strategy ?? options.sender?.name ?? 'batch'
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
    get info(): StoreInfo {
      const { connections = 0, ready = 0 } = sender.connections?.() ?? {}
      return { strategy, sender: sender.name, connections, ready, inFlight: runner.inFlight }
    },

    async run<Result>(update: Update<Result>): Promise<Result> {
      checkUpdate(update)
      return await runner.run(update)
    },

    async countAttempts(subjects: readonly string[], windowSeconds: number): Promise<Attempts> {
      checkStrings('subjects', subjects)
      checkNumber('windowSeconds', windowSeconds, { min: 1, max: 1e9, integer: true })
      return await runner.run(countAttempts(keys, { subjects, windowSeconds }, now()))
    },

    async ready(timeoutMs = 10_000, { readOnly = false } = {}): Promise<void> {
      checkNumber('timeoutMs', timeoutMs, { min: 0, max: MAX_TIMEOUT_MS })
      checkBoolean('readOnly', readOnly)
      await untilServed(context, timeoutMs)
      await checkKeyTypes(context)
      const isPartitioned = sender.topology !== undefined || keys.parts().length > 1
      if (isPartitioned) await checkPartitionsAtStart(context, { readOnly })
      await warnOfEviction(runner)
    },

    async ping(timeoutMs = deadlineMs): Promise<NodeState[]> {
      checkNumber('timeoutMs', timeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
      return await pingNodes(context, timeoutMs)
    },

    async runOnEach<Result>(update: Update<Result>): Promise<NodeResult<Result>[]> {
      checkUpdate(update)
      return await runOnEach(runner, { ...update, readOnly: true }, deadlineMs)
    },

    janitor,

    async close(): Promise<void> {
      if (active.size > 0) await Promise.all([...active].map((janitor) => janitor.stop()))
      await runner.close()
    },
  }
}
