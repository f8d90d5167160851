import { BatchTrace, batchChannel } from '../diagnostics.ts'
import { type Outcome, withOmitted } from './outcomes.ts'
import type { Sender, Waiting } from './sender.ts'

/**
 * A batch has a quarter of the operations in flight, so that Redis works while this process sends the next one, but at
 * least 16 and at most 64. With 16 to 1,024 callers, these limits took the least CPU time (2026-11-23).
 */
const [MIN_OPERATIONS, MAX_OPERATIONS, MAX_SHARE] = [16, 64, 1 / 4]

/**
 * Batches the operations of all callers of one event-loop turn, and sends them together with `sender`. The commands of
 * an operation stay together and in order, and the operations are in the order of the calls.
 *
 * @throws TypeError for a sender to several servers: operations would wait for servers that they do not use.
 */
export function batching(sender: Sender): Sender {
  if (sender.nodes) throw new TypeError('batching is for a sender to one server')
  let queue: Waiting[] = []
  let scheduled: NodeJS.Immediate | undefined
  let inFlight = 0

  function flush(): void {
    clearImmediate(scheduled)
    scheduled = undefined
    const waiting = queue
    queue = []
    // First the count, then the callers: their next operations must not find these in flight.
    sendTogether(sender, waiting).then(
      (all) => {
        inFlight -= waiting.length
        all.forEach((outcomes, index) => void waiting[index]?.resolve(outcomes))
      },
      (error: unknown) => {
        inFlight -= waiting.length
        for (const one of waiting) one.reject(error)
      },
    )
  }

  function enqueue(waiting: Waiting): void {
    inFlight++
    queue.push(waiting)
    const full = Math.min(MAX_OPERATIONS, Math.max(MIN_OPERATIONS, inFlight * MAX_SHARE))
    if (queue.length >= full) flush()
    else scheduled ??= setImmediate(flush)
  }

  return {
    name: sender.name,
    enqueue,
    close: () => sender.close(),
    ...(sender.connections && { connections: sender.connections.bind(sender) }),
    ...(sender.subscribe && { subscribe: sender.subscribe.bind(sender) }),
    send: (list) => new Promise((resolve, reject) => enqueue({ list, resolve, reject })),
  }
}

/** Sends the operations one after the other. Resolves with the outcomes of each. */
function sendTogether(sender: Sender, waiting: readonly Waiting[]): Promise<Outcome[][]> {
  const commands = waiting.flatMap(({ list }) => list.commands)
  const send = async () => {
    const outcomes = withOmitted(await sender.send({ commands }), commands.length)
    let end = 0
    return waiting.map(({ list }) => {
      const start = end
      end += list.commands.length
      return outcomes.slice(start, end)
    })
  }
  return batchChannel.hasSubscribers ? traced(send, waiting, commands.length) : send()
}

function traced(
  send: () => Promise<Outcome[][]>,
  waiting: readonly Waiting[],
  commands: number,
): Promise<Outcome[][]> {
  const traces = waiting.flatMap(({ list }) => list.trace ?? [])
  const message = new BatchTrace(waiting.length, commands, traces)
  const startedAt = performance.now()
  return batchChannel.tracePromise(async () => {
    message.failed = waiting.length
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
