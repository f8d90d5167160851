import { lookup } from 'node:dns/promises'
import type { Redis } from 'ioredis'
import { messageOf, Problem } from '../problem.ts'
import { until } from '../until.ts'
import { evenRange, isLinked, isServing, type SeenNode, type View, viewOf } from './view.ts'

/** A server that becomes a node of a cluster. */
export interface Member {
  /** A name or address that the other nodes can reach. */
  readonly host: string
  readonly port: number
  /** Port of the cluster bus. */
  readonly busPort: number
  /** A connection with the permissions of the user `cluster` in `cluster.acl` (apps/server-build). */
  readonly admin: Redis
}

export interface FormOptions {
  /** Number of primaries: the first members share the slots, the others become replicas. */
  primaries: number
  /** Default 30,000. */
  timeoutMs?: number
  signal?: AbortSignal | undefined
}

const addressOf = ({ host, port }: { host: string; port: number }) => `${host}:${port}`

/**
 * Forms a cluster from running servers, and waits until all nodes agree, every slot is served and every replica
 * is in sync. Idempotent: does only what is missing. A formed cluster stays unchanged, a partially formed one
 * is completed, and nodes whose addresses have changed are introduced again. Existing slots and roles are kept.
 *
 * @returns the final view of each member.
 * @throws Problem with the reason if the nodes do not agree in time; the reason of `signal`; the error reply of
 *   a node.
 */
export async function formCluster(
  members: readonly Member[],
  { primaries, timeoutMs = 30_000, signal }: FormOptions,
): Promise<readonly View[]> {
  let missing: string | undefined
  let views: readonly View[] = []
  const step = async (what: (views: readonly View[]) => Promise<string | undefined>) => {
    views = await Promise.all(members.map(({ admin }) => viewOf(admin)))
    missing = await what(views)
    return missing === undefined
  }
  const addresses = await Promise.all(members.map(ipAddressOf))
  const deadline = performance.now() + timeoutMs
  for (const what of [
    (views: readonly View[]) => assignSlots(members, views, primaries),
    (views: readonly View[]) => introduce(members, views, addresses),
    (views: readonly View[]) => attachReplicas(members, views),
    (views: readonly View[]) => disagreement(members, views),
  ]) {
    const options = { timeoutMs: deadline - performance.now(), everyMs: 100, signal }
    if (await until(() => step(what), options)) continue
    throw new Problem(`The cluster did not form within ${timeoutMs / 1000} s: ${missing}.`)
  }
  return views
}

/** Resolves a host, because a cluster gossips IP addresses. @throws Problem if the name is unknown. */
async function ipAddressOf({ host, port }: Member): Promise<string> {
  try {
    return addressOf({ host: (await lookup(host)).address, port })
  } catch (error) {
    throw new Problem(`Cannot resolve the address of the node ${host}: ${messageOf(error)}`)
  }
}

/** Assigns unassigned slots to the first members, unless these have slots. */
async function assignSlots(
  members: readonly Member[],
  views: readonly View[],
  primaries: number,
): Promise<undefined> {
  const taken = views.flatMap(({ self }) => self.slots)
  for (const [index, { self, nodes }] of views.slice(0, primaries).entries()) {
    const { admin } = members[index] as Member
    const [from, to] = evenRange(index, primaries)
    const isFree = taken.every(([first, last]) => last < from || first > to)
    if (!isFree || self.slots.length > 0 || self.primary !== null) continue
    // A different epoch per node, as redis-cli does: of two nodes with the same epoch, one may drop a moved slot.
    if (nodes.size === 1 && self.epoch === 0) await admin.cluster('SET-CONFIG-EPOCH', index + 1)
    await admin.cluster('ADDSLOTSRANGE', from, to)
  }
}

/** Introduces nodes that do not know each other or the current address. They meet in the background. */
async function introduce(
  members: readonly Member[],
  views: readonly View[],
  addresses: readonly string[],
): Promise<string | undefined> {
  let missing: string | undefined
  const knows = (one: number, other: number) => {
    const seen = views[one]?.nodes.get(views[other]?.self.id ?? '')
    return seen !== undefined && addressOf(seen) === addresses[other]
  }
  for (const [one, { admin, ...member }] of members.entries()) {
    for (const [other, { port, busPort }] of members.entries()) {
      // A single node meets itself, because that is how it learns its own address.
      const isPair = other > one || members.length === 1
      if (!isPair || (knows(one, other) && knows(other, one))) continue
      missing = `${addressOf(member)} and ${addressOf(members[other] as Member)} have not met`
      const host = addresses[other]?.slice(0, -`:${port}`.length) ?? ''
      await admin.cluster('MEET', host, port, busPort)
    }
  }
  return missing
}

/** Makes primaries without slots replicas, each of the primary with the fewest replicas. */
async function attachReplicas(
  members: readonly Member[],
  views: readonly View[],
): Promise<undefined> {
  const copies = new Map(
    views.filter(({ self }) => self.slots.length > 0).map(({ self }) => [self.id, 0]),
  )
  const count = (id: string) => copies.set(id, (copies.get(id) ?? 0) + 1)
  for (const { self } of views) if (self.primary !== null) count(self.primary)
  for (const [index, { self }] of views.entries()) {
    if (self.primary !== null || self.slots.length > 0) continue
    const [primary] = [...copies].toSorted(([, a], [, b]) => a - b)[0] ?? []
    if (primary === undefined) continue
    await members[index]?.admin.cluster('REPLICATE', primary)
    count(primary)
  }
}

/** Why the cluster is not ready; undefined if all nodes agree and serve. */
async function disagreement(
  members: readonly Member[],
  views: readonly View[],
): Promise<string | undefined> {
  for (const [index, { nodes, self }] of views.entries()) {
    const { admin, ...member } = members[index] as Member
    const name = addressOf(member)
    for (const [other, { self: truth }] of views.entries()) {
      const seen = nodes.get(truth.id)
      if (seen && sameState(seen, truth) && (seen.connected || other === index)) continue
      return `${name} has an outdated view of ${addressOf(members[other] as Member)}`
    }
    if (!(await isServing(admin))) return `${name} does not serve its slots yet`
    if (self.primary !== null && !(await isLinked(admin))) return `${name} is not in sync yet`
  }
  return undefined
}

const UNHEALTHY_FLAGS = ['fail', 'fail?', 'handshake', 'noaddr']

const sameState = (seen: SeenNode, truth: SeenNode) =>
  seen.primary === truth.primary &&
  JSON.stringify(seen.slots) === JSON.stringify(truth.slots) &&
  !seen.flags.some((flag) => UNHEALTHY_FLAGS.includes(flag))
