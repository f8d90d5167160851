import { BatchTrace, batchChannel } from '../diagnostics.ts'
import type { OnArrival, Outcome } from '../outcomes.ts'
import type { CommandList } from '../updates.ts'
import { merge } from './merge.ts'
import type { Sender } from './sender.ts'

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
    name: sender.name,
    close: () => sender.close(),
    ...(sender.state && { state: sender.state.bind(sender) }),
    ...(sender.scan && { scan: sender.scan.bind(sender) }),
    ...(sender.nodes && { nodes: sender.nodes.bind(sender) }),
    ...(sender.ready && { ready: sender.ready.bind(sender) }),
    ...(sender.serversOf && { serversOf: sender.serversOf.bind(sender) }),
    send: (list) =>
      new Promise((resolve, reject) => {
        queue.push({ list, resolve, reject })
        if (queue.length >= maxUpdates) flush()
        else scheduled ??= setImmediate(flush)
      }),
  }
}

async function sendTogether(sender: Sender, waiting: readonly Waiting[]): Promise<void> {
  const lists = waiting.map(({ list }) => list)
  try {
    const { commands, split, splitArrived } = merge(lists)
    // Of a cluster, updates of nodes that answer do not wait for one that does not.
    const onArrival: OnArrival = (outcomes) =>
      splitArrived(outcomes).forEach((own, index) => {
        if (own) waiting[index]?.resolve(own)
      })
    const send = async () => split(await sender.send({ commands }, onArrival))
    const all = await (batchChannel.hasSubscribers ? traced(send, lists, commands.length) : send())
    all.forEach((outcomes, index) => void waiting[index]?.resolve(outcomes))
  } catch (error) {
    for (const { reject } of waiting) reject(error)
  }
}

function traced(
  send: () => Promise<Outcome[][]>,
  lists: readonly CommandList[],
  commands: number,
): Promise<Outcome[][]> {
  const traces = lists.flatMap(({ trace }) => trace ?? [])
  const message = new BatchTrace(lists.length, commands, traces)
  const startedAt = performance.now()
  return batchChannel.tracePromise(async () => {
    message.failed = lists.length
    try {
      const all = await send()
      message.failed = all.filter((outcomes) => outcomes.some(isError)).length
      return all
    } finally {
      message.durationMs = performance.now() - startedAt
    }
  }, message)
}

const isError = (outcome: Outcome) => outcome instanceof Error
