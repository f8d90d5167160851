import { lookup } from 'node:dns/promises'
import type { Redis } from 'ioredis'
import { messageOf, Problem } from '../problem.ts'
import { until } from '../until.ts'
import { evenRange, isLinked, isServing, type SeenNode, type View, viewOf } from './view.ts'

/** A server that becomes a node of a cluster. */
export interface Member {
  /** A name or an address, under which the other nodes reach it. */
  readonly host: string
  readonly port: number
  /** Of the cluster bus. */
  readonly busPort: number
  /** A connection with a user that may do what `cluster.acl` (apps/server-build) allows the user `cluster`. */
  readonly admin: Redis
}

export interface FormOptions {
  /** The first so many members share the slots, the others become replicas. */
  primaries: number
  /** Default 30,000. */
  timeoutMs?: number
  signal?: AbortSignal | undefined
}

const addressOf = ({ host, port }: { host: string; port: number }) => `${host}:${port}`

/**
 * Forms a cluster of servers that run, and waits until all nodes agree, every slot is served and every
 * replica has its copy. Does only what is missing: on a formed cluster it changes nothing, one whose forming
 * was cut short is completed, and nodes whose addresses have changed find each other again. Slots and roles
 * that nodes have already stay as they are.
 *
 * @returns what each member sees at last.
 * @throws Problem when they do not agree in time, with the reason; the reason of `signal`; what a node replies
 *   that refuses a step.
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
    throw new Problem(`The cluster is not formed after ${timeoutMs / 1000} s: ${missing}.`)
  }
  return views
}

/** What a cluster gossips are IP addresses. @throws Problem when the name is unknown. */
async function ipAddressOf({ host, port }: Member): Promise<string> {
  try {
    return addressOf({ host: (await lookup(host)).address, port })
  } catch (error) {
    throw new Problem(`The address of the node ${host} cannot be found: ${messageOf(error)}`)
  }
}

/** Slots that nobody has go to the first members, as long as these have none. */
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
    // As redis-cli does: of two nodes with the same epoch one gives way, and may drop a moved slot.
    if (nodes.size === 1 && self.epoch === 0) await admin.cluster('SET-CONFIG-EPOCH', index + 1)
    await admin.cluster('ADDSLOTSRANGE', from, to)
  }
}

/** Introduces nodes that do not know each other, or by another address. They meet in the background. */
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
      // A single node meets itself: it learns its own address in no other way.
      const isPair = other > one || members.length === 1
      if (!isPair || (knows(one, other) && knows(other, one))) continue
      missing = `${addressOf(member)} and ${addressOf(members[other] as Member)} have not met`
      const host = addresses[other]?.slice(0, -`:${port}`.length) ?? ''
      await admin.cluster('MEET', host, port, busPort)
    }
  }
  return missing
}

/** Primaries without slots become replicas, each of a primary that has the fewest. */
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

/** Why the cluster is not ready; undefined when every node sees the same and serves. */
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
      return `${name} does not see ${addressOf(members[other] as Member)} as it is`
    }
    if (!(await isServing(admin))) return `${name} does not serve yet`
    if (self.primary !== null && !(await isLinked(admin))) return `${name} has no full copy yet`
  }
  return undefined
}

const UNWELL = ['fail', 'fail?', 'handshake', 'noaddr']

const sameState = (seen: SeenNode, truth: SeenNode) =>
  seen.primary === truth.primary &&
  JSON.stringify(seen.slots) === JSON.stringify(truth.slots) &&
  !seen.flags.some((flag) => UNWELL.includes(flag))
