import { contextOf } from '../core/context.ts'
import { idempotent, StoreError } from '../core/errors.ts'
import { checkObject, checkString } from '../core/input.ts'
import { copyMarker } from '../core/sessions/repeated-views.ts'
import { statesOf } from '../core/sessions/session-operations.ts'
import {
  type Range,
  rangeOf,
  totalEnded,
  userSessionLists,
} from '../core/sessions/user-session-lists.ts'
import { sessionWatch } from '../core/sessions/watched-sessions.ts'
import type { SessionStore } from '../core/store.ts'
import { BoundedCache } from '../core/tokens/bounded-cache.ts'
import { bridgedEnds } from './bridge-ends.ts'
import { mergePages } from './merge-pages.ts'
import { createMover } from './mover.ts'
import { beginMigration, checkState, type MigrationSide, readySides, setOpened } from './state.ts'

export interface BridgeSide extends MigrationSide {
  /** Both stores must have the same secrets and lifetimes. */
  readonly store: SessionStore
}

export interface BridgeOptions {
  /** The single Redis that the sessions leave. */
  from: BridgeSide
  to: BridgeSide
  /**
   * Where new sessions are created. `source`: sessions stay there until `migrate` or a bridge with the other home
   * moves them; processes without a bridge can still serve. `target`: a session moves from the source when a
   * request uses it; all other processes must use a bridge by then.
   */
  home: 'source' | 'target'
  /** Milliseconds since 1970. Default `Date.now`. */
  clock?: () => number
}

const isUnknown = (error: unknown): boolean =>
  error instanceof StoreError && error.code === 'ONETRIP_UNKNOWN_SESSION'

/** The id of a token that a store has verified. */
const idOf = (token: string): string => token.slice(0, token.indexOf('.'))

/** The size of a generation of `BoundedCache`. */
const SETTLED_SESSIONS = 10_000

/**
 * Combines two stores while sessions move from one to the other (`migrate`). Every request finds its session in
 * either store, or while it is being moved. With the target as home, the first request of a session in each
 * process takes one more round trip, and five more to move the session. With the source as home, each request of a
 * session that has moved takes two or three more.
 *
 * - Item counts are those of the home; `migrate` copies the counts of the source to the target.
 * - `run` and `countAttempts` use the source until the migration is finished.
 * - `ping` and `runOnEach` use the servers of both. `ping` rejects if no server of the home serves its keys.
 * - External sessions (`externalSessions`) are not supported.
 * - Start the migration only after `ready` has resolved in every process.
 *
 * @throws TypeError for any other `home`, and for stores with `cachedChecks`.
 */
export function bridgeStores({ from, to, home, clock = Date.now }: BridgeOptions): SessionStore {
  if (home !== 'source' && home !== 'target') throw new TypeError('home must be source or target')
  if ([from, to].some(({ store }) => store.info.cachedChecks > 0)) {
    throw new TypeError('bridgeStores needs stores without cachedChecks: sessions move')
  }
  const mover = createMover({ from, to })
  const targetIsHome = home === 'target'
  const homeStore = targetIsHome ? to.store : from.store
  const otherStore = targetIsHome ? from.store : to.store
  const listsOf = ({ store, keys }: BridgeSide) =>
    userSessionLists({ runner: { run: (operation) => store.run(operation) }, keys, now: clock })
  const sides = { from, to }
  const lists = { from: listsOf(from), to: listsOf(to) }

  /** Sessions that are known to be no longer in the source. */
  const settled = new BoundedCache<string, true>(SETTLED_SESSIONS)

  /**
   * Completes the move of a session to the target; with the target as home, also starts it if necessary. Must come
   * before any write for the session in the target: otherwise the session could arrive between the commands of a
   * view.
   */
  async function settle(id: string): Promise<void> {
    if (!targetIsHome) return await mover.complete(id)
    if (settled.get(id)) return
    const [state] = await to.store.run(statesOf(to.keys, [id]))
    if (state === undefined) await mover.move([id])
    settled.set(id, true)
  }

  /** Calls the function of the store that has the session of this token. */
  async function inEither<Result>(
    token: string,
    call: (store: SessionStore) => Promise<Result>,
  ): Promise<Result> {
    homeStore.tokenExpiresAt(token) // throws unless the token is valid
    if (!targetIsHome) {
      try {
        return await call(from.store)
      } catch (error) {
        if (!isUnknown(error)) throw error
      }
    }
    await settle(idOf(token))
    return await call(to.store)
  }

  /**
   * Returns the results of the servers of both sides, those of the home first. If no server of the other side is
   * usable, it has one entry with an error: the home still serves part of the sessions.
   */
  async function onBoth<Node>(
    ask: (store: SessionStore) => Promise<Node[]>,
  ): Promise<(Node | { node: string; error: StoreError })[]> {
    const name = `the ${targetIsHome ? 'source' : 'target'} of the migration`
    const others = ask(otherStore).catch((error: StoreError) => [{ node: name, error }])
    const [first, second] = await Promise.all([ask(homeStore), others])
    return [...first, ...second]
  }

  const userOf = async (token: string): Promise<string | null> =>
    (await inEither(token, (store) => store.checkToken(token))).user

  /** Whether the target has the session after `settle`. */
  async function isInTarget(token: string): Promise<boolean> {
    try {
      to.store.tokenExpiresAt(token)
      await settle(idOf(token))
      await to.store.checkToken(token)
      return true
    } catch (error) {
      if (error instanceof StoreError && error.statusCode === 401) return false
      throw error
    }
  }

  const logout = idempotent(async (token: string): Promise<boolean> => {
    if (!targetIsHome && (await from.store.logout(token))) return true
    homeStore.tokenExpiresAt(token)
    await settle(idOf(token))
    return await to.store.logout(token)
  })

  /** Ends sessions in the source, then in the target. Yields their numbers; see `totalEnded`. */
  async function* inTurn(end: (side: 'from' | 'to') => Promise<number>): AsyncGenerator<number> {
    yield await end('from')
    await mover.completeAll() // sessions that had left the source before
    yield await end('to')
  }

  async function* endOthers(token: string): AsyncGenerator<number> {
    const user = await userOf(token)
    const own = idOf(token)
    if (user !== null) yield* inTurn((side) => totalEnded(lists[side].endAll(user, own)))
  }

  /** Ends the caller's own session last, because the caller needs it to repeat a call that has failed. */
  async function* endEverywhere(token: string): AsyncGenerator<number> {
    yield* endOthers(token)
    if (await logout(token)) yield 1
  }

  /** Ends the session if this side has it and it belongs to the user. */
  async function endOne(side: 'from' | 'to', user: string, id: string): Promise<boolean> {
    const { store, keys } = sides[side]
    const [state] = await store.run(statesOf(keys, [id]))
    return state?.user === user && (await lists[side].end(id))
  }

  async function userPage(user: string, range: Range) {
    const left = await lists.from.page(user, range)
    await mover.completeAll()
    return mergePages([left, await lists.to.page(user, range)], range.limit)
  }

  const onSessionEnded = bridgedEnds({ from, to }, (id) => mover.complete(id))

  const tokenExpiresAt = (token: string) => homeStore.tokenExpiresAt(token)

  const checkToken: SessionStore['checkToken'] = (token, options) =>
    inEither(token, (store) => store.checkToken(token, options))

  return {
    get info() {
      const { connections, ready, inFlight, ...home } = homeStore.info
      const { info: other } = otherStore
      return {
        ...home,
        connections: connections + other.connections,
        ready: ready + other.ready,
        inFlight: inFlight + other.inFlight,
      }
    },
    tokenExpiresAt,
    renewsTokens: homeStore.renewsTokens,
    renewToken: (token) => homeStore.renewToken(token),
    requireFresh: (token, seconds) => homeStore.requireFresh(token, seconds),
    loginGuest: () => homeStore.loginGuest(),

    onSessionEnded,
    watchSession: sessionWatch({ onSessionEnded, checkToken, tokenExpiresAt, now: clock }),

    async login(user, options = {}) {
      checkObject('options', options)
      const { from: guest } = options
      if (typeof guest !== 'string') return await homeStore.login(user, options)
      if ((await isInTarget(guest)) || targetIsHome) return await to.store.login(user, options)
      const session = await from.store.login(user, options)
      if (!(await isInTarget(guest))) return session
      // The guest session had left the source before its records were read.
      await logout(session.token)
      return await to.store.login(user, options)
    },

    recordView: async (token, item, options) =>
      await inEither(token, async (store) => {
        const idempotencyKey = options?.idempotencyKey
        if (store === to.store && idempotencyKey !== undefined) {
          await copyMarker(from, to, { id: idOf(token), item, idempotencyKey })
        }
        return await store.recordView(token, item, options)
      }),
    checkToken,
    data: (token) => inEither(token, (store) => store.data(token)),
    patch: (token, fields, options) =>
      inEither(token, (store) => store.patch(token, fields, options)),
    touch: (token, unlessWithinSeconds) =>
      inEither(token, (store) => store.touch(token, unlessWithinSeconds)),
    viewedItems: (token) => inEither(token, (store) => store.viewedItems(token)),
    popularItems: (limit) => homeStore.popularItems(limit),

    async recentSessions(limit = 50) {
      const both = await Promise.all([from, to].map(({ store }) => store.recentSessions(limit)))
      return both
        .flat()
        .sort((a, b) => b.lastSeenAt - a.lastSeenAt)
        .slice(0, limit)
    },

    logout,

    endUserSessions: (user) =>
      totalEnded(inTurn((side) => sides[side].store.endUserSessions(user))),

    async userSessions(token, page = {}) {
      const range = rangeOf(page)
      const user = await userOf(token)
      if (user === null) return { sessions: [] }
      const idleBefore = clock() - 1000 * contextOf(to.store).idleSeconds
      const { sessions, nextCursor } = await userPage(user, range)
      return {
        sessions: sessions
          .filter(({ lastSeenAt }) => lastSeenAt >= idleBefore)
          .map((session) => ({ ...session, current: session.id === idOf(token) })),
        ...(nextCursor !== undefined && { nextCursor }),
      }
    },

    revokeSession: idempotent(async (token, id) => {
      checkString('id', id)
      const user = await userOf(token)
      if (user === null) return false
      if (await endOne('from', user, id)) return true
      await mover.complete(id)
      return await endOne('to', user, id)
    }),

    logoutEverywhere: (token) => totalEnded(endEverywhere(token)),
    endOtherSessions: (token) => totalEnded(endOthers(token)),

    async exportUser(user, options) {
      const left = await from.store.exportUser(user, options)
      await mover.completeAll()
      const arrived = await to.store.exportUser(user, options)
      const byId = new Map([...left.sessions, ...arrived.sessions].map((one) => [one.id, one]))
      return { user, sessions: [...byId.values()] }
    },

    eraseUser: (user, options) =>
      totalEnded(inTurn((side) => sides[side].store.eraseUser(user, options))),

    countAttempts: (subjects, windowSeconds) => from.store.countAttempts(subjects, windowSeconds),
    run: (operation) => from.store.run(operation),

    async ready(timeoutMs, { readOnly = false } = {}) {
      await readySides({ from, to }, timeoutMs)
      // With the source as home, this writes nothing, because the migration may never start.
      if (!targetIsHome || readOnly) return void (await checkState({ from, to }))
      await beginMigration({ from, to })
      await setOpened(from)
    },
    async ping(timeoutMs) {
      return await onBoth((store) => store.ping(timeoutMs))
    },
    runOnEach: (operation) => onBoth((store) => store.runOnEach(operation)),
    janitor: (limits) => homeStore.janitor(limits),
    async close() {
      await Promise.all([from.store.close(), to.store.close()])
    },
  }
}
