import type { CommandList } from '../command.ts'
import { BatchTrace, batchChannel } from '../diagnostics.ts'
import { type Outcome, withOmitted } from './outcomes.ts'
import type { Sender } from './sender.ts'

/**
 * A batch has a quarter of the operations in flight, so that Redis works while this process sends the next one, but at
 * least 16 and at most 64. With 16 to 1,024 callers, these limits took the least CPU time (2026-11-23).
 */
const [MIN_OPERATIONS, MAX_OPERATIONS, MAX_SHARE] = [16, 64, 1 / 4]

/** The operation of one caller, which waits for its outcomes. */
interface Waiting {
  readonly list: CommandList
  resolve(outcomes: readonly Outcome[]): void
  reject(error: unknown): void
}

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
    void sendTogether(sender, waiting).then(() => {
      inFlight -= waiting.length
    })
  }

  return {
    name: sender.name,
    close: () => sender.close(),
    ...(sender.connections && { connections: sender.connections.bind(sender) }),
    ...(sender.subscribe && { subscribe: sender.subscribe.bind(sender) }),
    send: (list) =>
      new Promise((resolve, reject) => {
        inFlight++
        queue.push({ list, resolve, reject })
        const full = Math.min(MAX_OPERATIONS, Math.max(MIN_OPERATIONS, inFlight * MAX_SHARE))
        if (queue.length >= full) flush()
        else scheduled ??= setImmediate(flush)
      }),
  }
}

/** Sends the operations one after the other, and gives each caller its outcomes. */
async function sendTogether(sender: Sender, waiting: readonly Waiting[]): Promise<void> {
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
  try {
    const all = await (batchChannel.hasSubscribers
      ? traced(send, waiting, commands.length)
      : send())
    all.forEach((outcomes, index) => void waiting[index]?.resolve(outcomes))
  } catch (error) {
    for (const { reject } of waiting) reject(error)
  }
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
