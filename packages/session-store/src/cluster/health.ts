import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import { nodesInShards } from './shards.ts'

/** How often the nodes are asked what they say of each other, also without traffic. */
const CHECK_EVERY_MS = 5_000
/** The same, while a node does not answer or has failed. */
const RECHECK_EVERY_MS = 1_000
/** The primaries asked each time, chosen at random: in a large cluster a reply describes many nodes. */
const MAX_ASKED = 5

export const nodeName = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** The nodes that most primaries call failed. */
const failed = new WeakMap<Cluster, ReadonlySet<string>>()

/** Whether most primaries call this node failed: another node takes over, or has taken over, its slots. */
export const isFailed = (cluster: Cluster, node: string | undefined): boolean =>
  node !== undefined && failed.get(cluster)?.has(node) === true

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
  readonly #cluster: Cluster
  readonly #onFailed: (node: Redis) => void
  readonly #unanswered = new Set<Redis>()
  #timer: NodeJS.Timeout | undefined
  #checking = false
  #stopped = false

  /** @param onFailed Called once with the connection to each node that has failed. */
  constructor(cluster: Cluster, onFailed: (node: Redis) => void) {
    this.#cluster = cluster
    this.#onFailed = onFailed
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
    const asked = sample(this.#cluster.nodes('master').filter(({ status }) => status === 'ready'))
    const answers = await Promise.all(asked.map((node) => this.#ask(node)))
    this.#checking = false
    if (this.#stopped) return
    const opinions = answers.filter((answer) => typeof answer === 'object')
    if (opinions.length > 0) this.#judge(opinions)
    const isHealthy = !answers.includes('late') && !failed.get(this.#cluster)?.size
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

  #judge(opinions: readonly Opinion[]): void {
    const suspects = new Set(opinions.flatMap((opinion) => [...opinion.failed]))
    const outvoted = [...suspects].filter((node) => {
      const others = opinions.filter(({ of }) => of !== node)
      return 2 * others.filter(({ failed }) => failed.has(node)).length > others.length
    })
    const before = failed.get(this.#cluster)
    failed.set(this.#cluster, new Set(outvoted))
    for (const node of this.#cluster.nodes()) {
      const name = nodeName(node)
      if (isFailed(this.#cluster, name) && !before?.has(name)) this.#onFailed(node)
    }
  }
}

/** What one node says of the others. */
interface Opinion {
  readonly of: string
  readonly failed: ReadonlySet<string>
}

function sample(nodes: readonly Redis[]): Redis[] {
  const left = [...nodes]
  const chosen: Redis[] = []
  while (left.length > 0 && chosen.length < MAX_ASKED) {
    chosen.push(...left.splice(Math.floor(Math.random() * left.length), 1))
  }
  return chosen
}

/** The failed nodes in a reply to CLUSTER SHARDS, as `host:port` with each of their hosts and ports. */
function failedIn(reply: unknown): Set<string> {
  const names = new Set<string>()
  for (const node of nodesInShards(reply)) {
    if (!String(node.get('health')).startsWith('fail')) continue
    for (const host of [node.get('endpoint'), node.get('ip')]) {
      for (const port of [node.get('port'), node.get('tls-port')]) names.add(`${host}:${port}`)
    }
  }
  return names
}
