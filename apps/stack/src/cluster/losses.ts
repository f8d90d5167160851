import type { ClusterNode } from '../cluster.ts'
import { describeExit, type Program } from '../program.ts'
import { until } from '../until.ts'
import { type SeenNode, type View, viewOf } from './view.ts'

/** Longer than the nodes need to detect the failure (cluster-node-timeout) and to vote. */
const TAKEOVER_MS = 30_000

/**
 * Reports nodes of a cluster that exit unexpectedly, and which node takes over.
 *
 * @param say Called with each line of a report, unless `stopping` returns true.
 * @returns the last node, when all have exited.
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
      const what = `The Redis node ${node.address} exited unexpectedly (${describeExit(exit)}).`
      say([what, ...lines].join('\n'))
      await reportTakeover(node, running, (line) => stopping() || say(line))
    })
  }
  return allLost
}

const RESTART_HINT = 'The next npm start has all nodes again.'

async function reportTakeover(
  lost: ClusterNode,
  running: ReadonlySet<ClusterNode>,
  say: (line: string) => void,
): Promise<void> {
  const nodes = (await survivorsView(running))?.nodes.values()
  const lostNode = nodes?.find(({ port }) => port === lost.port)
  if (!lostNode) return
  if (lostNode.primary !== null) {
    say(`It was a replica; its primary continues without it. ${RESTART_HINT}`)
    return
  }
  const [slot = 0] = lostNode.slots[0] ?? []
  let successor: SeenNode | undefined
  const hasSuccessor = async () => {
    successor = ownerOf(slot, await survivorsView(running))
    return successor !== undefined && successor.id !== lostNode.id
  }
  say('Requests for its part of the sessions get 503 until a replica takes over.')
  if (await until(hasSuccessor, { timeoutMs: TAKEOVER_MS })) {
    say(`${successor?.host}:${successor?.port} has taken over. ${RESTART_HINT}`)
    return
  }
  say(`No node has taken over after ${TAKEOVER_MS / 1000} s. ${RESTART_HINT}`)
}

function ownerOf(slot: number, view: View | undefined): SeenNode | undefined {
  const has = ({ slots }: SeenNode) => slots.some(([first, last]) => slot >= first && slot <= last)
  return view?.nodes.values().find(has)
}

/** The view of a running node; undefined if that node exits, too. */
async function survivorsView(running: ReadonlySet<ClusterNode>): Promise<View | undefined> {
  const [node] = running
  if (!node) return undefined
  const gone = node.program.exited.then(() => undefined)
  return await Promise.race([viewOf(node.admin).catch(() => undefined), gone])
}
