import { setTimeout as delay } from 'node:timers/promises'
import type { Operation, Reply } from './command.ts'
import { publishWarning } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Keys } from './keys.ts'
import { errorKind, isNotSent, isTemporary, notSent } from './redis/outcomes.ts'
import { parseInfo } from './redis/redis-info.ts'
import type { Runner } from './redis/runner.ts'
import { publishEnd } from './sessions/log-out.ts'

/** As `SessionStore.ready`. */
export async function becomeReady(runner: Runner, keys: Keys, timeoutMs: number): Promise<void> {
  await untilServed(runner, keys, timeoutMs)
  await checkKeyTypes(runner, keys)
  await requirePublish(runner, keys)
  await checkLayout(runner, keys)
  await warnOfEviction(runner)
}

/** A server that holds keys. */
export interface NodeState {
  /** `host:port`, or the path of a Unix socket; `none` for keys that no server has. */
  readonly node: string
  /** Why the server does not serve its keys; absent if it does. */
  readonly error?: StoreError
  /**
   * Why the server executes reads but no write, as the first word of its error: `READONLY` (a replica), `MISCONF` (the
   * disk is full), `OOM` (the memory is full) or `NOREPLICAS`.
   */
  readonly refusesWrites?: string
}

/** Why Redis executes reads but no write: full disk, too few replicas, full memory, replica. */
const WRITE_REFUSALS = new Set(['MISCONF', 'NOREPLICAS', 'OOM', 'READONLY'])

/** Of this many parts of the sessions, `pingNodes` probes the keys: enough to meet every server. */
const PROBED_PARTS = 64

/**
 * Reads a key on every server that holds keys, which fails, unlike PING, on one that is up and does not serve them, and
 * sends writes that change nothing: they would only update a member that no key has.
 *
 * @throws StoreError if no server serves its keys.
 */
export async function pingNodes(
  runner: Runner,
  keys: Keys,
  timeoutMs: number,
): Promise<NodeState[]> {
  const parts = keys.parts().slice(0, PROBED_PARTS)
  const probe: Operation<void> = {
    commands: [
      ['HGET', keys.login('any'), 'any'],
      ...parts.map(({ recent }) => ['ZADD', recent, 'XX', 0, 'any'] as const),
    ],
    readOnly: true,
    read: () => undefined,
  }
  const nodes = await runner.runOnEach(probe, timeoutMs)
  const states = nodes.map(({ node, error }): NodeState => {
    const kind = refusalKind(error) ?? ''
    if (WRITE_REFUSALS.has(kind)) return { node, refusesWrites: kind }
    return { node, ...(error && { error }) }
  })
  const [first] = states
  if (first?.error && states.every(({ error }) => error)) throw first.error
  return states
}

/** Pause between two checks of whether Redis is ready. */
const PING_INTERVAL_MS = 50

/**
 * Waits until a server serves its keys. (A client may connect before.)
 *
 * @throws StoreError `ONETRIP_NOT_SENT` if none does until `timeoutMs` have passed, if it is a replica, or if the store closes;
 *   `ONETRIP_REFUSED` if Redis refuses the keys, and waiting does not help.
 */
export async function untilServed(runner: Runner, keys: Keys, timeoutMs: number): Promise<void> {
  const until = performance.now() + timeoutMs
  let reason: StoreError | undefined
  let isReplica = false
  do {
    try {
      const states = await pingNodes(runner, keys, Math.max(1, until - performance.now()))
      if (!states.some(({ refusesWrites }) => refusesWrites === 'READONLY')) return
      isReplica = true
    } catch (error) {
      const kind = refusalKind(error)
      if (kind === 'WRONGTYPE') return // `checkKeyTypes` names the key
      if (kind !== undefined && !TEMPORARY.has(kind) && !isTemporary((error as StoreError).cause))
        throw error
      // The last attempt has hardly any time: an earlier one says more.
      if (reason === undefined || isNotSent(error)) reason = error as StoreError
    }
    await delay(PING_INTERVAL_MS)
    if (runner.closing.aborted) throw notSent('the store is closed')
  } while (performance.now() < until)
  const after = `after ${timeoutMs / 1000} s`
  if (isReplica) throw notSent(`Redis is a replica ${after}`)
  if (!isNotSent(reason)) throw notSent(`no usable reply ${after}`, reason)
  throw notSent(`no connection ${after}`, reason.cause)
}

/** Errors of a server that is not ready yet. Any other one will not go away by itself. */
const TEMPORARY = new Set(['BUSY', 'LOADING', 'MASTERDOWN'])

const refusalKind = (error: unknown): string | undefined =>
  error instanceof StoreError && error.code === 'ONETRIP_REFUSED'
    ? errorKind(error.cause as Error)
    : undefined

/**
 * Checks the types of the keys that all sessions share: login, recent and the item counts of all parts. Another
 * program may use the same names. One round trip.
 *
 * Does nothing if they cannot be read: a process must be able to start while one of several servers is down, or with
 * permissions that lack TYPE.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` that names a key of another type.
 */
async function checkKeyTypes(runner: Runner, keys: Keys): Promise<void> {
  const shared: [key: string, type: string][] = [
    ...keys.parts().flatMap(({ login, recent }): typeof shared => [
      [login, 'hash'],
      [recent, 'zset'],
    ]),
    ...keys.allPopular().map((key): (typeof shared)[0] => [key, 'zset']),
  ]
  const types: Operation<readonly Reply[]> = {
    commands: shared.map(([key]) => ['TYPE', key]),
    readOnly: true,
    read: (replies) => replies,
  }
  const found = await runner.run(types).catch(() => [])
  for (const [index, [key, wanted]] of shared.entries()) {
    const type = found[index] ?? 'none'
    if (type === 'none' || type === wanted) continue
    throw new StoreError(
      'ONETRIP_INVALID_INPUT',
      `the key ${key} is a ${nameOf(type)}, but the store needs a ${nameOf(wanted)}: another program uses this database. Use another database, or the option prefix`,
    )
  }
}

const nameOf = (type: Reply) => (type === 'zset' ? 'sorted set' : type)

/**
 * Compares the layout of the keys with that of the data, if the keys have a `check`. Only warns if that is not possible:
 * a process must be able to start while one of several servers is down.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the layouts differ.
 */
async function checkLayout(runner: Runner, keys: Keys): Promise<void> {
  if (!keys.check) return
  await runner.run(keys.check(keys)).catch((error: StoreError) => {
    if (error.code === 'ONETRIP_INVALID_INPUT') throw error
    publishWarning({
      code: 'ONETRIP_LAYOUT',
      message: `cannot compare the layout of the keys with that of the data in Redis: ${error.message}. Check that all processes use the same`,
    })
  })
}

/** @throws StoreError `ONETRIP_REFUSED` if the user of Redis may not publish the end of sessions. */
async function requirePublish(runner: Runner, keys: Keys): Promise<void> {
  const nothing = { commands: [publishEnd(keys, '')], readOnly: true, read: () => undefined }
  await runner.run(nothing).catch((cause: StoreError) => {
    if (cause.code !== 'ONETRIP_REFUSED') return // one of several servers may be down
    const [channels] = keys.login('').split('{') // without the name of a part
    const message = `the user of Redis lacks permission to publish session ends: give it +publish and &${channels}*`
    throw new StoreError(cause.code, message, { mayHaveWritten: false, cause })
  })
}

/** Short, because a mere warning must not delay the start. */
const MAX_WAIT_MS = 1_000

const readInfo: Operation<ReadonlyMap<string, string>> = {
  commands: [['INFO', 'memory']],
  readOnly: true,
  read: ([reply]) => parseInfo(String(reply)),
}

/**
 * Warns if Redis, or one of several servers, may evict keys. Does nothing if INFO is not allowed or lacks the
 * policy.
 */
async function warnOfEviction(runner: Runner): Promise<void> {
  const nodes = await runner.runOnEach(readInfo, MAX_WAIT_MS).catch(() => [])
  const policy = nodes
    .map(({ result }) => evictionPolicy(result))
    .find((found) => found !== undefined)
  if (policy === undefined) return
  // volatile-* policies evict only keys with an expiry. The keys of sessions have none.
  const lost = policy.startsWith('volatile-')
    ? "counters of attempts, idempotency keys and the janitor's lock"
    : 'sessions; with articleKeys, all of them at once'
  publishWarning({
    code: 'ONETRIP_EVICTION',
    message: `Redis has maxmemory-policy ${policy}: at maxmemory it evicts ${lost}. Set maxmemory-policy noeviction`,
  })
}

/** The eviction policy; undefined if the server evicts no keys. */
function evictionPolicy(info: ReadonlyMap<string, string> | undefined): string | undefined {
  const policy = info?.get('maxmemory_policy')
  return policy === 'noeviction' || Number(info?.get('maxmemory')) === 0 ? undefined : policy
}
