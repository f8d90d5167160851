import { StoreError } from '../core/errors.ts'
import { checkNumber, checkObject, checkString } from '../core/input.ts'
import { escapedPattern } from '../core/keys.ts'
import type { SessionStore } from '../core/store.ts'
import { type ExternalSessions, externalSessions } from './external-sessions.ts'
import { checkedUserOf, expiryOf, type UserOf } from './session-store.ts'

/** What an import has done so far. */
export interface ImportProgress {
  /** Sessions written to the store, also over the copies of an earlier run that nobody has used. */
  imported: number
  /** Sessions that requests have written to the store. */
  existing: number
  /** Reason → number of keys skipped. */
  skipped: Record<string, number>
}

export interface ImportOptions {
  /**
   * Sends one command to the Redis that connect-redis used, and returns its raw reply. node-redis:
   * `(command) => client.sendCommand(command)`; ioredis: `([name, ...args]) => redis.call(name, ...args)`.
   */
  send: (command: [string, ...string[]]) => Promise<unknown>
  /** The key prefix of connect-redis. Default `sess:`. */
  prefix?: string
  /** As of the stores: returns the user of a session. */
  userOf?: UserOf
  /** Sessions read and written concurrently, 1 to 1,000. Default 100. */
  batchSize?: number
  /** Called after each batch. */
  onProgress?: (progress: ImportProgress) => void
  /** Stops the import; the call then rejects with the signal's reason. */
  signal?: AbortSignal
}

type Outcome = 'imported' | 'existing' | { skipped: string }

/**
 * Copies the sessions of connect-redis, so that the same cookies work with `expressSessionStore` or
 * `fastifySessionStore`. Does not change the old keys or sessions that requests have written to the store, so you can
 * call it again after a failure. With a Redis Cluster, call it once for each primary.
 *
 * With `migrateFrom`, the old key stays valid until a request uses the copy: then its state replaces the copy, and if
 * the key is gone, the copy ends. Without `migrateFrom`, stop all processes that use connect-redis first: what they
 * change after the import is lost, and sessions that they end stay valid.
 *
 * A session keeps its remaining lifetime, but at most the store's `idleSeconds`. With `idleSeconds: Infinity` only
 * the expiry of its cookie ends it. Once it has ended, the old key cannot bring it back.
 *
 * @throws StoreError from the store; errors of `send`. Sessions that cannot be imported are skipped.
 */
export async function importConnectRedis(
  store: SessionStore,
  options: ImportOptions,
): Promise<ImportProgress> {
  checkObject('options', options)
  const { send, prefix = 'sess:', batchSize = 100, onProgress, signal } = options
  const userOf = checkedUserOf(options.userOf)
  if (typeof send !== 'function') {
    throw new StoreError('ONETRIP_INVALID_INPUT', 'send must be a function')
  }
  checkString('prefix', prefix)
  checkNumber('batchSize', batchSize, { min: 1, max: 1_000, integer: true })
  const match = `${escapedPattern(prefix)}*`
  const progress: ImportProgress = { imported: 0, existing: 0, skipped: {} }
  const count = (outcome: Outcome) => {
    if (typeof outcome === 'string') progress[outcome]++
    else progress.skipped[outcome.skipped] = (progress.skipped[outcome.skipped] ?? 0) + 1
  }
  const target = { sessions: externalSessions(store), userOf }
  let cursor = '0'
  do {
    const reply = await send(['SCAN', cursor, 'MATCH', match, 'COUNT', String(batchSize)])
    const [next, keys] = reply as [string, string[]]
    cursor = String(next)
    for (let at = 0; at < keys.length; at += batchSize) {
      signal?.throwIfAborted()
      const batch = keys.slice(at, at + batchSize)
      const outcomes = await Promise.all(
        batch.map((key) => importOne(target, send, key, key.slice(prefix.length))),
      )
      outcomes.forEach(count)
      onProgress?.(progress)
    }
  } while (cursor !== '0')
  return progress
}

/** Replies of PTTL. */
const NO_EXPIRY = -1
const NO_KEY = -2

interface Target {
  sessions: ExternalSessions
  userOf: ReturnType<typeof checkedUserOf>
}

async function importOne(
  { sessions, userOf }: Target,
  send: ImportOptions['send'],
  key: string,
  id: string,
): Promise<Outcome> {
  const type = await send(['TYPE', key])
  if (type !== 'string') return { skipped: type === 'none' ? 'expired' : 'not a string' }
  const [text, ttl] = await Promise.all([send(['GET', key]), send(['PTTL', key])])
  const ttlMs = Number(ttl)
  if (typeof text !== 'string' || ttlMs === NO_KEY) return { skipped: 'expired' }
  const session = parse(text)
  if (session === undefined) return { skipped: 'not JSON' }
  if (!isObject(session) || !isObject(session.cookie)) return { skipped: 'not a session' }
  if (expiryOf(session) <= Date.now()) return { skipped: 'expired' }
  const user = userWith(userOf, session)
  if (user instanceof StoreError) return { skipped: 'no valid user' }
  const left = ttlMs === NO_EXPIRY ? {} : { leftMs: ttlMs, blockedMs: Math.max(1, ttlMs) }
  try {
    const added = await sessions.add(id, session, { ...left, user, isCopy: true })
    if (added === 'ended') return { skipped: 'destroyed' }
    return added === 'added' ? 'imported' : 'existing'
  } catch (error) {
    if (error instanceof StoreError && error.code === 'ONETRIP_INVALID_INPUT') {
      return { skipped: 'beyond the limits of the store' }
    }
    throw error
  }
}

/** The error of a session that `userOf` rejects is counted: it must not stop the import of the others. */
function userWith(userOf: Target['userOf'], session: object) {
  try {
    return userOf(session)
  } catch (error) {
    return error as StoreError
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
