import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'

/** How often the nodes are asked what they say of each other, also without traffic. */
const CHECK_EVERY_MS = 5_000
/** The same, while a node does not answer or has failed. */
const RECHECK_EVERY_MS = 1_000
/** The primaries asked each time, chosen at random: in a large cluster a reply describes many nodes. */
const MAX_ASKED = 5

export const nodeName = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/**
 * Asks the primaries of a cluster which nodes have failed. A node that hangs, or that is cut off from its peers, still
 * looks connected. If it resumes after its replica took over, it acknowledges writes that are lost, until it hears of
 * the new primary.
 *
 * A node marks another one as failed only if the majority of primaries agrees. Nevertheless the majority of the
 * answers decides here, because the mark of a node that was cut off may be outdated. A node's opinion of itself does
 * not count. Without the permission CLUSTER SHARDS, no node counts as failed.
 */
export class ClusterHealth {
  /** The nodes that most primaries call failed: another one takes over, or has taken over, their slots. */
  failed: ReadonlySet<string> = new Set()
  readonly #cluster: Cluster
  readonly #unanswered = new Set<Redis>()
  #timer: NodeJS.Timeout | undefined
  #checking = false
  #stopped = false

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#schedule(CHECK_EVERY_MS)
  }

  /** Checks now, and often until all nodes answer. Call it when a reply is late. */
  suspect(): void {
    if (!this.#checking) this.#schedule(0)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#check(), ms).unref()
  }

  async #check(): Promise<void> {
    this.#checking = true
    const ready = this.#cluster.nodes('master').filter(({ status }) => status === 'ready')
    const asked = ready.sort(() => Math.random() - 0.5).slice(0, MAX_ASKED)
    const answers = await Promise.all(asked.map((node) => this.#ask(node)))
    this.#checking = false
    if (this.#stopped) return
    const opinions = answers.filter((answer) => typeof answer === 'object')
    if (opinions.length > 0) this.#judge(opinions)
    const isHealthy = !answers.includes('late') && this.failed.size === 0
    this.#schedule(isHealthy ? CHECK_EVERY_MS : RECHECK_EVERY_MS)
  }

  async #ask(node: Redis): Promise<Opinion | 'late' | 'none'> {
    if (this.#unanswered.has(node)) return 'late'
    this.#unanswered.add(node)
    const answered = node
      .call('CLUSTER', 'SHARDS')
      .then((reply) => ({ of: nodeName(node), failed: failedIn(reply) }))
      .catch(() => 'none' as const) // the connection was lost, or the permission is missing
      .finally(() => this.#unanswered.delete(node))
    return await Promise.race([answered, delay(RECHECK_EVERY_MS, 'late' as const, { ref: false })])
  }

  /** Ends the connections to nodes that have failed: callers with commands in flight get unknown outcomes now. */
  #judge(opinions: readonly Opinion[]): void {
    const suspects = new Set(opinions.flatMap(({ failed }) => [...failed]))
    const outvoted = [...suspects].filter((node) => {
      const others = opinions.filter(({ of }) => of !== node)
      return 2 * others.filter(({ failed }) => failed.has(node)).length > others.length
    })
    const before = this.failed
    this.failed = new Set(outvoted)
    for (const node of this.#cluster.nodes()) {
      if (!this.failed.has(nodeName(node)) || before.has(nodeName(node))) continue
      node.stream?.destroy(new Error('the other nodes of the cluster call this node failed'))
    }
  }
}

/** What one node says of the others. */
interface Opinion {
  readonly of: string
  readonly failed: ReadonlySet<string>
}

/** The failed nodes in a reply to CLUSTER SHARDS, as `host:port` with each of their hosts and ports. */
function failedIn(reply: unknown): Set<string> {
  const names = new Set<string>()
  for (const node of listOf(reply).flatMap((shard) => listOf(fieldsOf(shard).get('nodes')))) {
    const fields = fieldsOf(node)
    if (!String(fields.get('health')).startsWith('fail')) continue
    for (const host of [fields.get('endpoint'), fields.get('ip')]) {
      for (const port of [fields.get('port'), fields.get('tls-port')]) names.add(`${host}:${port}`)
    }
  }
  return names
}

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : [])

/** RESP2 sends a map as a list of alternating names and values. */
function fieldsOf(reply: unknown): ReadonlyMap<unknown, unknown> {
  const list = listOf(reply)
  return new Map(
    list.flatMap((value, at) => (at % 2 === 1 ? [[list[at - 1], value] as const] : [])),
  )
}
