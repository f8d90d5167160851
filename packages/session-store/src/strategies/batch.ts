import type { Client } from '../client.ts'
import { batchChannel, publishRoundTrip, type SentBatch } from '../diagnostics.ts'
import { canFrame, sendFrame } from '../frame.ts'
import { merge } from '../merge.ts'
import { lateReply, type Outcome, readOutcomes, updateError } from '../outcomes.ts'
import { sendPipeline } from '../send.ts'
import type { Strategy, StrategyOptions } from '../strategy.ts'
import type { Command, Update } from '../updates.ts'
import { openPool, scanWith } from './pooled.ts'

/** 8 to 32 were alike; with 64 Redis and this process waited for each other in turn (perf-notes). */
const MAX_UPDATES = 16

interface Waiting {
  readonly update: Update<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/**
 * Shared connections; the updates of all callers of one event-loop turn travel as one non-transactional
 * pipeline, merged into variadic commands where those say the same: one round trip for all of them.
 */
export function batch(options: StrategyOptions): Strategy {
  const { pool, deadlineMs } = openPool(options)
  const capacity = Math.min(MAX_UPDATES, options.maxInFlight ?? MAX_UPDATES)
  let queue: Waiting[] = []
  let scheduled: NodeJS.Immediate | undefined

  function run<Result>(update: Update<Result>): Promise<Result> {
    const refusal = pool.refusal(queue.length + 1)
    if (refusal) return Promise.reject(updateError(refusal, update.readOnly))
    return new Promise<Result>((resolve, reject) => {
      queue.push({ update, resolve: resolve as Waiting['resolve'], reject })
      if (queue.length >= capacity) flush()
      else scheduled ??= setImmediate(flush)
    })
  }

  function flush(): void {
    clearImmediate(scheduled)
    scheduled = undefined
    if (queue.length === 0) return
    const waiting = queue
    queue = []
    void send(waiting)
  }

  async function send(waiting: readonly Waiting[]): Promise<void> {
    const startedAt = performance.now()
    let sent = 0
    let failed = 0
    let isLate = false
    const fail = ({ update, reject }: Waiting, error: unknown) => {
      failed++
      reject(updateError(error, update.readOnly))
    }
    const deadline = setTimeout(() => {
      isLate = true
      for (const one of waiting) fail(one, lateReply(one.update.readOnly))
    }, deadlineMs)
    try {
      const { commands, split } = merge(waiting.map(({ update }) => update))
      sent = commands.length
      const outcomes = await pool.use((client) => write(client, commands), waiting.length)
      if (!isLate) {
        split(outcomes).forEach((own, index) => {
          settle(waiting[index] as Waiting, own, fail)
        })
      }
    } catch (error) {
      if (!isLate) for (const one of waiting) fail(one, error)
    } finally {
      clearTimeout(deadline)
    }
    if (batchChannel.hasSubscribers) {
      batchChannel.publish({
        updates: waiting.length,
        commands: sent,
        durationMs: performance.now() - startedAt,
        failed,
      } satisfies SentBatch)
    }
  }

  return {
    name: 'batch',
    run,
    scan: scanWith({ pool, deadlineMs }),
    get pool() {
      return pool.state
    },
    ready: (timeoutMs) => pool.ready(timeoutMs),
    async close() {
      flush()
      await pool.close(deadlineMs)
    },
  }
}

function settle(
  waiting: Waiting,
  outcomes: readonly Outcome[],
  fail: (waiting: Waiting, error: unknown) => void,
): void {
  let result: unknown
  try {
    result = readOutcomes(waiting.update, outcomes)
  } catch (error) {
    fail(waiting, error)
    return
  }
  waiting.resolve(result)
}

function write(client: Client, commands: readonly Command[]): Promise<Outcome[]> {
  if (!canFrame(client)) return sendPipeline(client, commands)
  publishRoundTrip(commands.length)
  return sendFrame(client, commands)
}
