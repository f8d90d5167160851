import { parseInfo } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** A node of a cluster, as one node sees it. */
export interface SeenNode {
  readonly id: string
  /** Empty where a node does not know its own address yet. */
  readonly host: string
  readonly port: number
  /** `master`, `slave`, `fail`, `handshake` … as CLUSTER NODES has them. */
  readonly flags: readonly string[]
  /** Id of the primary that it copies; null for a primary. */
  readonly primary: string | null
  readonly epoch: number
  readonly connected: boolean
  /** Ranges of slots, first and last; those that are on the move are left out. */
  readonly slots: readonly (readonly [number, number])[]
}

/** A cluster as one of its nodes sees it. */
export interface View {
  readonly self: SeenNode
  /** By id, with itself. */
  readonly nodes: ReadonlyMap<string, SeenNode>
}

/** Asks a node what it sees. Rejects as ioredis does. */
export async function viewOf(admin: Redis): Promise<View> {
  return parseView((await admin.cluster('NODES')) as string)
}

/** Reads the reply of CLUSTER NODES. @throws Error when it has no node that is `myself`. */
export function parseView(text: string): View {
  const seen = text.split('\n').filter(Boolean).map(parseNode)
  const self = seen.find(({ flags }) => flags.includes('myself'))
  if (!self) throw new Error('CLUSTER NODES does not name the node that was asked')
  return { self, nodes: new Map(seen.map((node) => [node.id, node])) }
}

function parseNode(line: string): SeenNode {
  const [id = '', address = '', flags = '', primary, , , epoch, link, ...slots] = line.split(' ')
  // 127.0.0.1:6390@16390,host-name; an IPv6 address has colons itself.
  const [, host = '', port] = /^(.*):(\d+)(?:@|$)/.exec(address) ?? []
  return {
    ...{ id, host },
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

/** Whether a replica has the connection to its primary and has caught up with a full copy. */
export async function isLinked(admin: Redis): Promise<boolean> {
  return parseInfo(await admin.info('replication')).get('master_link_status') === 'up'
}

/** Whether a node serves its slots. */
export async function isServing(admin: Redis): Promise<boolean> {
  return parseInfo((await admin.cluster('INFO')) as string).get('cluster_state') === 'ok'
}

export const SLOTS = 16_384

/** The slots of one of several primaries that share all of them evenly, the first and the last. */
export function evenRange(index: number, primaries: number): readonly [number, number] {
  const from = Math.ceil((index * SLOTS) / primaries)
  return [from, Math.ceil(((index + 1) * SLOTS) / primaries) - 1]
}
