import {
  type Command,
  checkedOptions,
  type Keys,
  type Outcome,
  type Sender,
  StoreError,
  subscribeWith,
} from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import { type ClusterAddress, parseLocation } from './location.ts'
import { type Node, Nodes, notSent } from './nodes.ts'
import { isRedirection } from './outcomes.ts'
import { partitionedKeys } from './partitioned-keys.ts'
import { placesToResend, redirected } from './redirections.ts'
import { slotOf } from './slots.ts'

export interface ClusterOptions {
  /** `redis+cluster://user:password@host:port,host:port`, with TLS `rediss+cluster://`; or its parts. */
  redis: string | ClusterAddress
  /** The number of `partitionedKeys`, the same in every process. Default 64. */
  partitions?: number | undefined
  /** Timeout of an operation in milliseconds, at most a day. A connection attempt takes at most half. Default 2,000. */
  deadlineMs?: number | undefined
  /** Maximum number of operations that wait for one node; more are rejected. Default 1,000. */
  maxInFlight?: number | undefined
}

type SentCommands = Parameters<Sender['send']>[0]

/**
 * The options of a store on a Redis Cluster: `new SessionStore({ ...cluster({ redis, partitions }), tokens })`. It opens
 * one connection to each node, and sends one batch to each node for the operations of an event-loop turn. The store's
 * own `maxInFlight` would count the operations to all nodes together.
 *
 * @throws TypeError if an option is invalid.
 */
export function cluster(options: ClusterOptions) {
  const defaults = { redis: undefined, partitions: 64, deadlineMs: 2_000, maxInFlight: 1_000 }
  const { redis, partitions, deadlineMs, maxInFlight } = checkedOptions(
    'cluster',
    options,
    defaults,
    { deadlineMs: { min: 1, max: 86_400_000 }, maxInFlight: { min: 1, integer: true } },
  )
  const address = typeof redis === 'string' ? parseLocation(redis).cluster : redis
  if (!address) throw new TypeError('cluster needs redis: a URL redis+cluster:// or its parts')
  const keys: Keys = partitionedKeys(partitions)
  const sender = clusterSender(new Nodes(address, deadlineMs), maxInFlight)
  return { sender, keys, deadlineMs, maxInFlight: Number.MAX_SAFE_INTEGER }
}

/** `maxInFlight` applies to each node, so that one that does not reply does not block operations of the others. */
export function clusterSender(nodes: Nodes, maxInFlight: number): Sender {
  /**
   * Sends the parts of an operation to the nodes that hold its keys, at the same time: one round trip. Sends nothing
   * unless all these nodes are connected.
   *
   * If a node refuses a command because its slot has moved, only that command is sent again, and some reads after
   * it (`placesToResend`). A write that was or may have been executed is never sent again.
   *
   * The nodes' own connections send. After one ASK, a pipeline of `ioredis.Cluster` goes to the importing node as a
   * whole and misses keys that have not arrived there (with ioredis 6.0.0 on 2026-11-21, existing sessions were not
   * found).
   */
  async function send(list: SentCommands): Promise<Outcome[]> {
    nodes.requireReady()
    const { commands } = list
    const places = new Map<string | undefined, number[]>()
    commands.forEach((command, place) => {
      const owner = nodes.ownerOf(slotOf(command))
      const own = places.get(owner)
      if (own) own.push(place)
      else places.set(owner, [place])
    })
    const parts = Array.from(places, ([owner, own]) => ({ node: nodes.get(owner), places: own }))
    const used = parts.map(({ node }) => node)
    const full = used.find(({ inFlight }) => inFlight >= maxInFlight)
    if (full) throw overloaded(full)
    if (used.some(({ isUp }) => !isUp)) {
      await Promise.all(used.map((node) => waitingFor(node, () => node.connect())))
      return await send(list)
    }
    const outcomes = new Array<Outcome>(commands.length)
    const sending = parts.map(async ({ node, places }) => {
      const part = places.map((place) => commands[place] as Command)
      node.inFlight++
      try {
        const replies = await answered(node, { ...list, commands: part })
        for (const [at, place] of places.entries()) outcomes[place] = replies[at] ?? null
      } finally {
        node.inFlight--
      }
    })
    if (sending.length === 1) await sending[0]
    else await Promise.all(sending)
    return outcomes
  }

  /** The outcomes of the commands, with those of the commands that were sent again. */
  async function answered(node: Node, list: SentCommands): Promise<readonly Outcome[]> {
    const outcomes = await node.send(list)
    const groups = placesToResend(list.commands, outcomes)
    if (groups.length === 0) return outcomes
    const all = [...outcomes]
    const resending = groups.map(async (group) => {
      for (const at of group) all[at] = await redirected(nodes.client, list.commands[at] as Command)
    })
    await Promise.all(resending)
    return all
  }

  return {
    name: 'batch',
    send,
    connections() {
      const states = nodes.states()
      return { connections: states.length, ready: states.filter(Boolean).length }
    },
    async nodes() {
      nodes.requireReady()
      return nodes.primaries().map((primary) => ({
        name: primary ?? 'none',
        async send({ commands }: SentCommands) {
          const node = nodes.get(primary)
          await node.connect()
          const outcomes = await node.send({ commands })
          // This is only for this node, and it serves its own keys.
          return outcomes.map((outcome) => (isRedirection(outcome) ? null : outcome))
        },
      }))
    },
    subscribe: (...subscription) => subscribeWith(copyOfAnyNode(nodes), ...subscription),
    close: () => nodes.close(),
  }
}

async function waitingFor<Result>(node: Node, work: () => Promise<Result>): Promise<Result> {
  node.inFlight++
  try {
    return await work()
  } finally {
    node.inFlight--
  }
}

const overloaded = ({ name, inFlight }: Node) =>
  new StoreError(
    'ONETRIP_OVERLOADED',
    `not sent to Redis: ${inFlight} operations are in flight to ${name}, the maximum (maxInFlight)`,
  )

/** The nodes pass messages on to each other. */
function copyOfAnyNode(nodes: Nodes): Redis {
  nodes.requireReady()
  const up = nodes.primaries().flatMap((primary) => nodes.find(primary) ?? [])
  const node = up[Math.floor(Math.random() * up.length)]
  if (!node) throw notSent('the nodes of the cluster are not known')
  return node.redis.duplicate({ enableOfflineQueue: false, lazyConnect: true, retryStrategy: null })
}
