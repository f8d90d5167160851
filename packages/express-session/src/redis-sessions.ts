import { type Command, type Operation, type Reply, repeatable } from '@onetrip/session-store'
import { decoded, inPairs, invalid, type Loaded, parsedSession, textsOf } from './encoding.ts'
import {
  type CommandRunner,
  checked,
  checkUser,
  type Fields,
  type StoredSession,
  type StoreOptions,
  userBy,
} from './options.ts'
import { END, FORGET, MOVE, WRITE, type WriteOptions, type Written } from './scripts.ts'

/** How long no save can create an ended session again: longer than any request that has loaded it. */
const BLOCKED_SECONDS = 300
/** How long the entry of a list may be waiting for the session to get this user, and a list outlives its sessions. */
const SETTLING_MS = 300_000

const MAX_ID_LENGTH = 1_024
const SCAN_COUNT = 1_000

/** A session of a user. */
export interface UserSession {
  id: string
  /** When the session became one of the user, in milliseconds since 1970. */
  loggedInAt: number
  session: StoredSession
}

/** What to write. Undefined fields are removed. */
export interface Changes {
  fields: Fields
  /** The text of the cookie in Redis, unless the request has changed the cookie. See `WriteOptions`. */
  cookie?: string | undefined
  /** Undefined: unchanged. */
  user?: string | null | undefined
}

interface Entry {
  id: string
  score: string
}

/** The sessions of express-session and @fastify/session in Redis. */
export class RedisSessions {
  readonly #store: CommandRunner
  readonly #options
  readonly #prefix: string
  readonly #closing: string

  constructor(store: CommandRunner, options: StoreOptions = {}) {
    this.#store = store
    this.#options = checked(store, options)
    this.#prefix = this.#options.prefix
    this.#closing = this.#prefix.includes('{') ? '}' : ''
  }

  userOf(session: Fields): string | null | undefined {
    return userBy(this.#options.userOf, session)
  }

  /** Loads a session. Gives it its user, if it has none or another one, such as a session from before `userOf`. */
  async read(id: string): Promise<StoredSession | null> {
    const found = await this.#load(id)
    if (found === undefined) return null
    const user = textOf(this.userOf(found.session))
    if (user !== undefined && user !== found.user) {
      await this.#write(id, [], { user, userWas: found.user }, found.session)
    }
    return found.session
  }

  /** Replaces or creates a session, unless it has ended within the last five minutes. */
  async create(id: string, session: StoredSession): Promise<void> {
    const ms = this.#msLeft(session)
    if (ms <= 0) return await this.end(id)
    const user = textOf(this.userOf(session))
    await this.#write(id, textsOf(session), { create: true, ms, user }, session)
  }

  /** Changes a session, unless it has ended. */
  async change(id: string, session: StoredSession, changes: Changes): Promise<void> {
    const ms = this.#msLeft(session)
    if (ms <= 0) return await this.end(id)
    const { fields, cookie, user } = changes
    await this.#write(id, textsOf(fields), { ms, cookie, user: textOf(user) }, session)
  }

  async end(id: string): Promise<void> {
    await this.#endAll([id])
  }

  /** The user's sessions, latest login first. */
  async ofUser(user: string): Promise<UserSession[]> {
    const entries = await this.#entriesOf(user)
    const replies = await this.#run(
      entries.map(({ id }) => this.#get(id)),
      true,
    )
    const found: UserSession[] = []
    const stale: Entry[] = []
    for (const [index, entry] of entries.entries()) {
      const loaded = decoded(replies[index])
      const loggedInAt = Number(entry.score)
      if (loaded?.user === user) found.push({ id: entry.id, loggedInAt, session: loaded.session })
      else if (loggedInAt < Date.now() - SETTLING_MS) stale.push(entry)
    }
    await this.#forget(user, stale)
    return found
  }

  /** Ends the user's sessions except one. Returns their number. */
  async endUserSessions(user: string, except?: string): Promise<number> {
    const entries = await this.#entriesOf(user)
    return await this.#endSome(
      user,
      entries.filter(({ id }) => id !== except),
    )
  }

  /** The ids of all sessions, in pages. */
  async *pages(): AsyncGenerator<string[]> {
    const match = `${this.#prefix.replace(/[\\*?[\]]/g, '\\$&')}*${this.#closing}`
    const seen = new Set<string>() // SCAN may return a key twice
    let cursor = '0'
    do {
      const scan: Command = ['SCAN', cursor, 'MATCH', match, 'COUNT', SCAN_COUNT]
      const [page, info] = await this.#run([scan, ['INFO', 'cluster']], true)
      if (String(info).includes('cluster_enabled:1')) {
        throw invalid('all, length, ids and clear need a single Redis, not a cluster')
      }
      const [next, keys] = page as [string, string[]]
      const ids = [...new Set(keys)]
        .map((key) => key.slice(this.#prefix.length, key.length - this.#closing.length))
        .filter((id) => !isReserved(id) && !seen.has(id))
      const cookies = await this.#run(
        ids.map((id) => ['HEXISTS', this.#key(id), 'cookie']),
        true,
      )
      yield ids.filter((id, index) => cookies[index] === 1 && seen.add(id))
      cursor = String(next)
    } while (cursor !== '0')
  }

  /** All sessions, each with its id. */
  async all(): Promise<(StoredSession & { id: string })[]> {
    const found: (StoredSession & { id: string })[] = []
    for await (const ids of this.pages()) {
      const replies = await this.#run(
        ids.map((id) => this.#get(id)),
        true,
      )
      ids.forEach((id, index) => {
        const loaded = decoded(replies[index])
        if (loaded) found.push({ ...loaded.session, id })
      })
    }
    return found
  }

  async ids(): Promise<string[]> {
    const found: string[] = []
    for await (const ids of this.pages()) found.push(...ids)
    return found
  }

  async clear(): Promise<void> {
    for await (const ids of this.pages()) await this.#endAll(ids)
  }

  async #load(id: string): Promise<Loaded | undefined> {
    const old = this.#oldKeys(id)
    // The old key first: another request may be moving the session.
    const commands: Command[] = [...old.map((key): Command => ['GET', key]), this.#get(id)]
    const replies = await this.#run(commands, true)
    const found = decoded(replies.at(-1))
    const [text] = replies.slice(0, old.length)
    return found || typeof text !== 'string' ? found : await this.#move(id, text)
  }

  /** Moves a session of connect-redis, unless another request has moved or ended it. */
  async #move(id: string, text: string): Promise<Loaded | undefined> {
    const session = parsedSession(text)
    const user = this.userOf(session)
    const ms = Math.max(1, this.#msLeft(session))
    if (user) await this.#enlist(user, id, ms)
    const pairs = [...textsOf(session), ...(user ? ['', user] : [])]
    await this.#run([['EVAL', MOVE, ...this.#keys(id), text, ms, ...pairs]])
    const [reply] = await this.#run([this.#get(id)], true)
    return decoded(reply)
  }

  async #write(
    id: string,
    pairs: readonly string[],
    options: WriteOptions,
    session: StoredSession,
  ): Promise<void> {
    const ms = Math.max(1, this.#msLeft(session))
    const write = async (isListed: boolean) => {
      const header = JSON.stringify({ ...options, isListed })
      const owner = this.userOf(session)
      const [written] = await this.#run([
        ['EVAL', WRITE, 1, this.#key(id), header, ...pairs],
        ...(owner ? [this.#extended(owner, ms, 'GT')] : []),
      ])
      return written as Written
    }
    const { user } = options
    if ((await write(false)) !== 'unlisted' || user === undefined) return
    // In this order, so that ending all sessions of the user finds this one.
    const listed = await this.#enlist(user, id, ms)
    await write(true)
    if (listed > this.#options.maxSessionsPerUser) {
      // If it fails, the next login does it.
      await this.#endOldest(user, id).catch(() => undefined)
    }
  }

  /** Returns the number of entries of the list. */
  async #enlist(user: string, id: string, ms: number): Promise<number> {
    const list = this.#list(user)
    const [, , , count] = await this.#run([
      ['ZADD', list, Date.now(), id],
      this.#extended(user, ms, 'NX'),
      this.#extended(user, ms, 'GT'),
      ['ZCARD', list],
    ])
    return Number(count)
  }

  async #endOldest(user: string, current: string): Promise<void> {
    const sessions = await this.ofUser(user)
    const oldest = sessions.filter(({ id }) => id !== current)
    await this.#endSome(user, oldest.slice(this.#options.maxSessionsPerUser - 1))
  }

  /** Ends those of these sessions that are the user's. Returns their number. */
  async #endSome(user: string, sessions: readonly { id: string }[]): Promise<number> {
    const ended = await this.#endAll(
      sessions.map(({ id }) => id),
      user,
    )
    return ended.filter((owner) => owner !== null).length
  }

  /** Returns the user of each session, `''` for none; null if it did not exist, or is of another user than `owner`. */
  async #endAll(ids: readonly string[], owner = ''): Promise<(string | null)[]> {
    const ends = ids.map((id): Command => {
      return ['EVAL', END, ...this.#keys(id), BLOCKED_SECONDS, owner]
    })
    const users = (await this.#run(ends).catch((error: unknown) => {
      throw repeatable(error)
    })) as (string | null)[]
    // An ended id cannot come back as long as this takes. If it fails, ofUser removes the entry.
    const removals = ids.flatMap((id, index): Command[] => {
      const user = users[index]
      return user ? [['ZREM', this.#list(user), id]] : []
    })
    await this.#run(removals).catch(() => undefined)
    return users
  }

  /** The list lives as long as its sessions. `NX` and `GT` of PEXPIRE: if it has no expiry, or an earlier one. */
  #extended(user: string, ms: number, only: 'NX' | 'GT'): Command {
    return ['PEXPIRE', this.#list(user), ms + SETTLING_MS, only]
  }

  async #entriesOf(user: string): Promise<Entry[]> {
    checkUser(user)
    const range: Command = ['ZRANGE', this.#list(user), 0, -1, 'REV', 'WITHSCORES']
    const [reply] = await this.#run([range], true)
    // Pairs in RESP3.
    return inPairs((reply as Reply[]).flat()).map(([id, score]) => ({ id, score }))
  }

  async #forget(user: string, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    const args = entries.flatMap(({ id, score }) => [id, score])
    await this.#run([['EVAL', FORGET, 1, this.#list(user), ...args]])
  }

  #key(id: string): string {
    if (typeof id !== 'string' || id === '' || id.length > MAX_ID_LENGTH || isReserved(id)) {
      throw invalid(
        `an id must have 1 to ${MAX_ID_LENGTH} characters and not begin with ${RESERVED}`,
      )
    }
    return this.#prefix + id + this.#closing
  }

  #list(user: string): string {
    return this.#prefix + RESERVED + user
  }

  /** The key of connect-redis, if sessions move. */
  #oldKeys(id: string): string[] {
    const { migrateFrom } = this.#options
    return migrateFrom === undefined ? [] : [migrateFrom + id]
  }

  /** All keys of a session, after their number, for a script. */
  #keys(id: string): [number: number, ...keys: string[]] {
    const keys = [this.#key(id), ...this.#oldKeys(id)]
    return [keys.length, ...keys]
  }

  #get(id: string): Command {
    return ['HGETALL', this.#key(id)]
  }

  #msLeft({ cookie }: StoredSession): number {
    const expires = cookie?.expires
    const time = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
    return Number.isNaN(time) ? this.#options.ttl * 1000 : Math.ceil(time - Date.now())
  }

  /** Runs commands in one round trip. */
  async #run(commands: readonly Command[], readOnly = false): Promise<readonly Reply[]> {
    if (commands.length === 0) return []
    const operation: Operation<readonly Reply[]> = {
      commands,
      readOnly,
      read: (replies) => replies,
    }
    return await this.#store.run(operation)
  }
}

/** The part of an id that only the keys of lists have. */
const RESERVED = 'user:'
const isReserved = (id: string) => id.startsWith(RESERVED)

const textOf = (user: string | null | undefined) => (user === null ? '' : user)
