import { BatchTrace, batchChannel } from '../diagnostics.ts'
import type { CommandList } from '../operations.ts'
import type { OnArrival, Outcome } from '../outcomes.ts'
import { merge } from './merge.ts'
import type { Sender } from './sender.ts'

/** 8 to 32 were equally fast; with 64, Redis and this process took turns waiting (2026-11-21). */
const MAX_UPDATES = 16

/** The operation of one caller. */
interface Waiting {
  readonly list: CommandList
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

/**
 * Batches the updates of all callers of one event-loop turn: merges them into variadic commands where that is
 * equivalent, and sends them together with `sender`.
 *
 * @param maxUpdates Maximum number of updates in a batch. Default 16.
 */
export function batching(sender: Sender, maxUpdates = MAX_UPDATES): Sender {
  let queue: Waiting[] = []
  let scheduled: NodeJS.Immediate | undefined

  function flush(): void {
    clearImmediate(scheduled)
    scheduled = undefined
    const waiting = queue
    queue = []
    void sendTogether(sender, sender.prepare ? waiting.filter(isPrepared) : waiting)
  }

  /** Whether the connections that the operation needs are up. If not, enqueues it again once they are. */
  function isPrepared({ list, resolve, reject }: Waiting): boolean {
    const ready = sender.prepare?.(list.servers ?? sender.serversOf?.(list.commands) ?? [])
    ready?.then(() => void send(list).then(resolve, reject), reject)
    return ready === undefined
  }

  const send: Sender['send'] = (list) =>
    new Promise((resolve, reject) => {
      queue.push({ list, resolve, reject })
      if (queue.length >= maxUpdates) flush()
      else scheduled ??= setImmediate(flush)
    })

  return {
    name: sender.name,
    close: () => sender.close(),
    ...(sender.state && { state: sender.state.bind(sender) }),
    ...(sender.scan && { scan: sender.scan.bind(sender) }),
    ...(sender.nodes && { nodes: sender.nodes.bind(sender) }),
    ...(sender.ready && { ready: sender.ready.bind(sender) }),
    ...(sender.serversOf && { serversOf: sender.serversOf.bind(sender) }),
    ...(sender.prepare && { prepare: sender.prepare.bind(sender) }),
    send,
  }
}

async function sendTogether(sender: Sender, waiting: readonly Waiting[]): Promise<void> {
  if (waiting.length === 0) return
  const lists = waiting.map(({ list }) => list)
  try {
    const { commands, split, splitArrived } = merge(lists)
    // On a cluster, an update is answered once its own nodes have replied.
    const onArrival: OnArrival = (outcomes) =>
      splitArrived(outcomes).forEach((own, index) => {
        if (own) waiting[index]?.resolve(own)
      })
    const servers = lists.flatMap((list) => list.servers ?? [])
    const merged = servers.length > 0 ? { commands, servers: [...new Set(servers)] } : { commands }
    const send = async () => split(await sender.send(merged, onArrival))
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
