import { type Command, isRead, type Outcome, type Reply } from '@onetrip/session-store'
import type { Cluster, Command as IoredisCommand } from 'ioredis'
import { explained, isRedirection, isRefusal, isTemporary } from './outcomes.ts'
import { slotOf } from './slots.ts'

/**
 * The places of the commands to send again, by slot: those that the node refused because their slot has moved,
 * and the reads after them that would otherwise be older than a redirected write. `recordView`, for example,
 * reads the login last, to notice a session that ends meanwhile.
 *
 * Only reads of the same slot, because commands of different slots may go to different nodes and have no order.
 * And only reads after the last write of the slot that may have been executed: while the keys of a slot move one
 * by one, the node refuses only the commands whose key has left, so HGETALL and DEL of another key of the slot
 * are both executed. A repeated HGETALL would then find nothing. A whole slot is compared, not a key: a command
 * may have further keys.
 */
export function placesToResend(
  commands: readonly Command[],
  outcomes: readonly Outcome[],
): number[][] {
  if (!outcomes.some(isRedirection)) return []
  const isRefused = (place: number) => isRedirection(outcomes[place])
  const reads = (place: number) => isRead(commands[place] as Command)
  const bySlot = Map.groupBy(commands.keys(), (place) => slotOf(commands[place] as Command))
  return [...bySlot.values()].flatMap((places) => {
    const first = places.findIndex(isRefused)
    if (first < 0) return []
    const last = places.findLastIndex((place) => !reads(place) && !isTemporary(outcomes[place]))
    const isRepeatable = (place: number, at: number) => reads(place) && at > first && at > last
    return [places.filter((place, at) => isRefused(place) || isRepeatable(place, at))]
  })
}

/**
 * Sends one command with ioredis, which follows MOVED and ASK, also to a node that it did not know. Any other
 * refusal is the outcome. By itself, ioredis would also retry TRYAGAIN and CLUSTERDOWN, every 100 ms and on
 * random nodes. After 16 errors it would return one that is no refusal, so that the outcome would be unknown;
 * here it is the last refusal.
 *
 * This depends on internals of ioredis: `call` passes a `Command` to `sendCommand`, and `Cluster.sendCommand`
 * replaces its `reject`.
 */
export async function redirected(cluster: Cluster, [name, ...args]: Command): Promise<Outcome> {
  let refusal: Error | undefined
  const caller = {
    options: cluster.options,
    sendCommand(command: IoredisCommand) {
      const { reject } = command
      cluster.sendCommand(command)
      const follow = command.reject
      command.reject = (error) => {
        refusal = isRefusal(error) ? error : undefined
        if (isRedirection(error)) follow(error)
        else reject(error)
      }
      return command.promise
    },
  }
  try {
    return (await cluster.call.apply(caller as unknown as Cluster, [name, ...args])) as Reply
  } catch (error) {
    return explained(refusal ?? (error as Error))
  }
}
