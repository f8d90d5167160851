import { externalSessions } from '../adapters/external-sessions.ts'
import { warnOfEviction } from './connections/eviction.ts'
import { withDataIf } from './data/data.ts'
import { dataRules } from './data/data-fields.ts'
import { dataFunctions, sessionData } from './data/session-data.ts'
import { idempotent, requireSession } from './errors.ts'
import {
  checkBoolean,
  checkFunctions,
  checkLimit,
  checkName,
  checkNumber,
  checkOptions,
  checkString,
  checkStrings,
  checkUpdate,
  MAX_TIMEOUT_MS,
} from './input.ts'
import { checkKeyTypes } from './key-types.ts'
import { articleKeys, prefixedKeys } from './keys.ts'
import * as updates from './operations.ts'
import { checkOptionNames } from './option-names.ts'
import { checkPartitionsAtStart } from './partitions.ts'
import { checkRange } from './range.ts'
import { createJanitor, type Janitor } from './retention/janitor.ts'
import { type JanitorOptions, ownJanitor } from './retention/janitor-options.ts'
import { pingNodes, runOnEach, untilServed } from './sending/nodes.ts'
import { createRunner } from './sending/runner.ts'
import { chooseSender, DEFAULT_DEADLINE_MS } from './sending/strategies.ts'
import { countAttempts } from './sessions/attempts.ts'
import { cursorOf } from './sessions/cursor.ts'
import { guestOf, loginFromGuest } from './sessions/guests.ts'
import { viewFunctions } from './sessions/record-view.ts'
import { userRecords } from './sessions/user-records.ts'
import { rangeOf, totalEnded, userSessionLists } from './sessions/user-session-lists.ts'
import * as userSessions from './sessions/user-sessions.ts'
import { type SessionStoreOptions, storeOptionNames, tokensOptionNames } from './store-options.ts'
import type { SessionStore } from './store-types.ts'
import { createTokens } from './tokens/tokens.ts'

/**
 * Creates a store of logins, recent sessions and viewed items in Redis. Runs a janitor until `close()`, unless
 * `janitor` is `'elsewhere'` or `false`. Warns (`onetrip:warning`) if the installed ioredis makes it take more CPU.
 *
 * @throws TypeError if an option does not exist, has a wrong type or is out of range, if the URL of Redis or
 *   a secret is invalid, or if the strategy or the keys do not work with the other options.
 */
export function createSessionStore(options: SessionStoreOptions): SessionStore {
  checkOptions('a session store', options)
  checkOptionNames('a session store', options, storeOptionNames)
  const tokensOptions = options.tokens || undefined
  checkOptionNames('tokens', tokensOptions, tokensOptionNames)
  const { idleSeconds = 14 * 24 * 3600, maxSessionsPerUser = 100, prefix = '' } = options
  const {
    maxInFlight = 1_000,
    deadlineMs = DEFAULT_DEADLINE_MS,
    keys: layout = articleKeys,
  } = options
  checkRange('maxSessionsPerUser', maxSessionsPerUser, { min: 1, integer: true })
  checkRange('idleSeconds', idleSeconds, { min: 0.001 })
  checkRange('maxInFlight', maxInFlight, { min: 1, integer: true })
  checkFunctions('keys', layout, Object.keys(articleKeys))
  const keys = prefixedKeys(prefix, layout)
  const rules = dataRules(options.dataLimits)
  const tokens = createTokens(options.tokens)
  const now = tokensOptions?.clock ?? Date.now
  const sender = chooseSender(options)
  const runner = createRunner(sender, { deadlineMs, maxInFlight })
  const { run } = runner
  const context = { runner, keys, now, idleSeconds }
  const { topology } = sender
  const activeJanitors = new Set<Janitor>()
  const janitor = (janitorOptions: JanitorOptions = {}): Janitor =>
    createJanitor(
      { ...context, now: () => now() / 1000, sweepKeys: prefix !== '', active: activeJanitors },
      janitorOptions,
    )

  const isIdle = ({ lastSeenAt }: { lastSeenAt: number }) => lastSeenAt < now() - 1000 * idleSeconds

  /** Wraps a function that may run several updates, so that `close` waits for all of them. */
  const multiStep =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      runner.begin()
      try {
        return await call(...args)
      } finally {
        runner.end()
      }
    }

  /** As `multiStep`, for an idempotent function. */
  const repeatableSteps = <Args extends unknown[], Result>(
    call: (...args: Args) => Promise<Result>,
  ) => multiStep(idempotent(call))

  async function checkId(id: string): Promise<updates.Session> {
    return await checkWith(updates.checkToken(keys, id))
  }

  async function checkWith<Found extends updates.Session>(
    update: updates.Update<Found | undefined>,
  ): Promise<Found> {
    const session = requireSession(await run(update))
    return requireSession(isIdle(session) ? undefined : session)
  }

  const lists = userSessionLists({ runner, keys, now })
  /** Ends the caller's own session last, because the caller needs it to repeat a call that has failed. */
  async function* endEverywhere(own: string): AsyncGenerator<number> {
    const { user } = await checkId(own)
    if (user !== null) yield* lists.endAll(user, own)
    if (await lists.end(own)) yield 1
  }

  const records = userRecords({ ...context, endListed: lists.endAll })
  try {
    topology?.checkKeys(keys)
    const own = ownJanitor(options.janitor, context)
    if (own !== undefined) janitor(own).start()
  } catch (error) {
    // An injected client must not keep the store's listeners: they would hide its errors.
    if (sender !== options.sender) void sender.close()
    throw error
  }

  return {
    ...dataFunctions({ ...context, tokens, rules: rules.tokens }),
    ...viewFunctions({
      ...context,
      tokens,
      sameServer: !topology && keys.parts().length === 1,
    }),
    exportUser: multiStep(records.exportUser),
    eraseUser: multiStep(records.eraseUser),

    get info() {
      const { connections = 0, ready = 0 } = sender.connections?.() ?? {}
      const { strategy = options.sender?.name ?? 'batch' } = options
      return { strategy, sender: sender.name, connections, ready, inFlight: runner.inFlight }
    },

    external: externalSessions({
      ...context,
      byId: sessionData({ ...context, rules: rules.external }),
    }),

    async run(update) {
      checkUpdate(update)
      return await run(update)
    },

    login: multiStep(async (user, options = {}) => {
      checkName('user', user)
      const guest = guestOf(tokens, options)
      const { remember = false } = options
      checkBoolean('remember', remember)
      const token = tokens.issue(remember)
      const id = tokens.verify(token)
      const listed =
        guest === undefined
          ? await run(userSessions.login(keys, { id, user }, now()))
          : await loginFromGuest(context, { guest, id, user })
      if (listed > maxSessionsPerUser) {
        await lists.endOldest(user, listed - maxSessionsPerUser, id).catch(() => undefined)
      }
      return { token, expiresAt: tokens.expiresAt(id) }
    }),

    issueToken: () => tokens.issue(),

    tokenExpiresAt: (token) => tokens.expiresAt(tokens.verify(token)),

    async updateToken(token, user, item) {
      const id = tokens.verify(token)
      checkName('user', user)
      if (item !== undefined) checkName('item', item)
      await run(updates.updateToken(keys, { id, user, item }, now()))
    },

    async checkToken(token, options) {
      const id = tokens.verify(token)
      return await checkWith(withDataIf(options, updates.checkToken(keys, id), keys, id))
    },

    touch: repeatableSteps(async (token, unlessWithinSeconds = 0) => {
      const id = tokens.verify(token)
      checkNumber('unlessWithinSeconds', unlessWithinSeconds, { min: 0 })
      const session = await checkId(id)
      if (session.lastSeenAt > now() - 1000 * unlessWithinSeconds) return session
      return requireSession(await run(updates.touchSession(keys, id, now())))
    }),

    recentSessions: multiStep(async (limit = 50) => {
      checkLimit(limit)
      const recent = await run(updates.recentIds(keys, limit))
      if (recent.length === 0) return []
      const ids = recent.map(({ id }) => id)
      const users = await run(updates.usersOf(keys, ids))
      return recent.flatMap(({ lastSeenAt }, index) => {
        const user = users[index]
        return user === undefined ? [] : [{ user, lastSeenAt }]
      })
    }),

    async viewedItems(token) {
      return requireSession(await run(updates.viewedItems(keys, tokens.verify(token))))
    },

    async popularItems(limit = 10) {
      checkLimit(limit)
      return await run(updates.popularItems(keys, limit))
    },

    logout: repeatableSteps(async (token) => await lists.end(tokens.verify(token))),

    userSessions: repeatableSteps(async (token, page = {}) => {
      const own = tokens.verify(token)
      const range = rangeOf(page)
      const { user } = await checkId(own)
      if (user === null) return { sessions: [] }
      const { sessions, last } = await lists.page(user, range)
      return {
        sessions: sessions
          .filter((session) => !isIdle(session))
          .map((session) => ({ ...session, current: session.id === own })),
        ...(last && { nextCursor: cursorOf(last) }),
      }
    }),

    revokeSession: repeatableSteps(async (token, id) => {
      const own = tokens.verify(token)
      checkString('id', id)
      const { user } = await checkId(own)
      if (user === null) return false
      const [state] = await run(userSessions.statesOf(keys, [id]))
      return state?.user === user && (await lists.end(id))
    }),

    logoutEverywhere: multiStep(
      async (token) => await totalEnded(endEverywhere(tokens.verify(token))),
    ),

    endUserSessions: multiStep(async (user) => {
      checkName('user', user)
      return await totalEnded(lists.endAll(user))
    }),

    async countAttempts(subjects, windowSeconds) {
      checkStrings('subjects', subjects)
      checkNumber('windowSeconds', windowSeconds, { min: 1, max: 1e9, integer: true })
      return await run(countAttempts(keys, { subjects, windowSeconds }, now()))
    },

    async ready(timeoutMs = 10_000, { readOnly = false } = {}) {
      checkNumber('timeoutMs', timeoutMs, { min: 0, max: MAX_TIMEOUT_MS })
      checkBoolean('readOnly', readOnly)
      await untilServed(context, timeoutMs)
      await checkKeyTypes(context)
      const isPartitioned = topology !== undefined || keys.parts().length > 1
      if (isPartitioned) await checkPartitionsAtStart(context, { readOnly })
      await warnOfEviction(runner)
    },

    async ping(timeoutMs = deadlineMs) {
      checkNumber('timeoutMs', timeoutMs, { min: 1, max: MAX_TIMEOUT_MS })
      return await pingNodes(context, timeoutMs)
    },

    async runOnEach(update) {
      checkUpdate(update)
      return await runOnEach(runner, { ...update, readOnly: true }, deadlineMs)
    },

    janitor,

    async close() {
      if (activeJanitors.size > 0) {
        await Promise.all([...activeJanitors].map((janitor) => janitor.stop()))
      }
      await runner.close()
    },
  }
}
