import type { ClusterNode } from '../cluster.ts'
import { describeExit, type Program } from '../program.ts'
import { until } from '../until.ts'
import { type SeenNode, type View, viewOf } from './view.ts'

/** Longer than the nodes take to notice (cluster-node-timeout) and to vote. */
const TAKEOVER_MS = 30_000

/**
 * Reports the nodes of a cluster that end by themselves, and which node takes over.
 *
 * @param say Called with each line of a report; not after `stopping` has become true.
 * @returns the last node, when all have ended.
 */
export function watchLosses(
  nodes: readonly ClusterNode[],
  { say, stopping }: { say: (line: string) => void; stopping: () => boolean },
): Promise<Program> {
  const { promise: allLost, resolve } = Promise.withResolvers<Program>()
  const running = new Set(nodes)
  for (const node of nodes) {
    const { program } = node
    void program.exited.then(async (exit) => {
      running.delete(node)
      if (stopping()) return
      if (running.size === 0) return resolve(program)
      const lines = exit.signal ? [] : program.lastLines.map((line) => `  ${line}`)
      const what = `The Redis node ${node.address} ended by itself (${describeExit(exit)}).`
      say([what, ...lines].join('\n'))
      await reportTakeover(node, running, (line) => stopping() || say(line))
    })
  }
  return allLost
}

const AGAIN = 'The next npm start has all nodes again.'

async function reportTakeover(
  lost: ClusterNode,
  running: ReadonlySet<ClusterNode>,
  say: (line: string) => void,
): Promise<void> {
  const atLoss = await survivorsView(running)
  const all = [...(atLoss?.nodes.values() ?? [])]
  const it = all.find(({ port }) => port === lost.port)
  if (!it) return
  if (it.primary !== null) {
    say(`It was a replica; its primary goes on without it. ${AGAIN}`)
    return
  }
  const [slot] = it.slots[0] ?? [] // Taken over already, or never had one.
  const isRunning = ({ port }: SeenNode) => [...running].some((node) => node.port === port)
  const replica = all.find((node) => node.primary === it.id && isRunning(node))
  if (slot !== undefined && replica === undefined) {
    say(`It has no replica: requests for its part of the sessions get 503. ${AGAIN}`)
    return
  }
  if (replica) say(`Its replica ${addressOf(replica)} takes over.`)
  let heir = replica
  const hasHeir = async () => {
    heir = ownerOf(slot ?? 0, await survivorsView(running))
    return heir !== undefined && heir.id !== it.id
  }
  if (await until(hasHeir, { timeoutMs: TAKEOVER_MS })) {
    if (heir) say(`${addressOf(heir)} has taken over. ${AGAIN}`)
    return
  }
  say(
    `Nobody has taken over after ${TAKEOVER_MS / 1000} s, which takes a majority of the primaries. ${AGAIN}`,
  )
}

const addressOf = ({ host, port }: SeenNode) => `${host}:${port}`

function ownerOf(slot: number, view: View | undefined): SeenNode | undefined {
  const has = ({ slots }: SeenNode) => slots.some(([first, last]) => slot >= first && slot <= last)
  return [...(view?.nodes.values() ?? [])].find(has)
}

/** Undefined where the node that was asked has ended, too. */
async function survivorsView(running: ReadonlySet<ClusterNode>): Promise<View | undefined> {
  const [node] = running
  if (!node) return undefined
  const gone = node.program.exited.then(() => undefined)
  return await Promise.race([viewOf(node.admin).catch(() => undefined), gone])
}
