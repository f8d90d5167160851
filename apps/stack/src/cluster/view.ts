import { parseInfo } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** A node of a cluster, in the view of one node. */
export interface SeenNode {
  readonly id: string
  /** Empty if a node does not know its own address yet. */
  readonly host: string
  readonly port: number
  /** Flags of CLUSTER NODES: `master`, `slave`, `fail`, `handshake` and so on. */
  readonly flags: readonly string[]
  /** Id of a replica's primary; null for a primary. */
  readonly primary: string | null
  readonly epoch: number
  readonly connected: boolean
  /** Ranges of slots (first, last), without migrating slots. */
  readonly slots: readonly (readonly [number, number])[]
}

/** A cluster in the view of one of its nodes. */
export interface View {
  readonly self: SeenNode
  /** All nodes by id, including `self`. */
  readonly nodes: ReadonlyMap<string, SeenNode>
}

/** Reads the view of a node. Rejects as ioredis does. */
export async function viewOf(admin: Redis): Promise<View> {
  return parseView((await admin.cluster('NODES')) as string)
}

/** Parses a reply of CLUSTER NODES. @throws Error if no node has the flag `myself`. */
export function parseView(text: string): View {
  const seen = text.split('\n').filter(Boolean).map(parseNode)
  const self = seen.find(({ flags }) => flags.includes('myself'))
  if (!self) throw new Error('CLUSTER NODES does not name the node itself')
  return { self, nodes: new Map(seen.map((node) => [node.id, node])) }
}

function parseNode(line: string): SeenNode {
  const [id = '', address = '', flags = '', primary, , , epoch, link, ...slots] = line.split(' ')
  // 127.0.0.1:6390@16390,host-name; an IPv6 address contains colons.
  const [, host = '', port] = /^(.*):(\d+)(?:@|$)/.exec(address) ?? []
  return {
    id,
    host,
    port: Number(port),
    flags: flags.split(','),
    primary: primary === '-' ? null : (primary ?? null),
    epoch: Number(epoch),
    connected: link === 'connected',
    slots: slots
      .filter((range) => !range.startsWith('['))
      .map((range) => {
        const [first = 0, last = first] = range.split('-').map(Number)
        return [first, last] as const
      }),
  }
}

/** Whether a replica is connected to its primary and has completed its sync. */
export async function isLinked(admin: Redis): Promise<boolean> {
  return parseInfo(await admin.info('replication')).get('master_link_status') === 'up'
}

/** Whether a node serves its slots. */
export async function isServing(admin: Redis): Promise<boolean> {
  return parseInfo((await admin.cluster('INFO')) as string).get('cluster_state') === 'ok'
}

export const SLOTS = 16_384

/** The first and last slot of a primary, if the primaries share all slots evenly. */
export function evenRange(index: number, primaries: number): readonly [number, number] {
  const from = Math.ceil((index * SLOTS) / primaries)
  return [from, Math.ceil(((index + 1) * SLOTS) / primaries) - 1]
}
