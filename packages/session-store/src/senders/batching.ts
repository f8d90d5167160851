import { batchChannel, type SentBatch } from '../diagnostics.ts'
import type { Outcome } from '../outcomes.ts'
import type { Sender } from '../sender.ts'
import type { CommandList } from '../updates.ts'
import { merge } from './merge.ts'

/** 8 to 32 were alike; with 64 Redis and this process waited for each other in turn (2026-11-21). */
const MAX_UPDATES = 16

interface Waiting {
  readonly list: CommandList
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

/**
 * Lets the updates of all callers of one event-loop turn travel together: merged into variadic commands
 * where those say the same, and sent by `sender` at once.
 *
 * @param maxUpdates Updates that travel together at the most. Default 16.
 */
export function batching(sender: Sender, maxUpdates = MAX_UPDATES): Sender {
  let queue: Waiting[] = []
  let scheduled: NodeJS.Immediate | undefined

  function flush(): void {
    clearImmediate(scheduled)
    scheduled = undefined
    const waiting = queue
    queue = []
    void sendTogether(sender, waiting)
  }

  return {
    ...sender,
    close: () => sender.close(),
    send: (list) =>
      new Promise((resolve, reject) => {
        queue.push({ list, resolve, reject })
        if (queue.length >= maxUpdates) flush()
        else scheduled ??= setImmediate(flush)
      }),
  }
}

async function sendTogether(sender: Sender, waiting: readonly Waiting[]): Promise<void> {
  const startedAt = performance.now()
  const { commands, split } = merge(waiting.map(({ list }) => list))
  let failed = waiting.length
  try {
    const all = split(await sender.send({ commands }))
    failed = 0
    all.forEach((outcomes, index) => {
      if (outcomes.some((outcome) => outcome instanceof Error)) failed++
      waiting[index]?.resolve(outcomes)
    })
  } catch (error) {
    for (const { reject } of waiting) reject(error)
  }
  if (batchChannel.hasSubscribers) {
    batchChannel.publish({
      updates: waiting.length,
      commands: commands.length,
      durationMs: performance.now() - startedAt,
      failed,
    } satisfies SentBatch)
  }
}
