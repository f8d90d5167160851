import type { Operation } from './command.ts'
import { requireSession } from './errors.ts'
import { checkFunctions, checkOptions } from './input.ts'
import { articleKeys, prefixedKeys } from './keys.ts'
import { checkToken, isIdle, type Session } from './operations/sessions.ts'
import { checkOptionNames } from './option-names.ts'
import { type SessionStoreOptions, storeOptionNames, tokensOptionNames } from './options.ts'
import { checkRange } from './range.ts'
import { checkDeadline, chooseSender, DEFAULT_DEADLINE_MS } from './redis/choose.ts'
import { createRunner, type Runner } from './redis/runner.ts'
import { createSessionEnds, type ReadContext, type SessionEnds } from './sessions/session-ends.ts'
import { createTokens, type Tokens } from './tokens/tokens.ts'

/** What the functions of a store share. */
export interface StoreContext extends ReadContext {
  readonly tokens: Tokens
  readonly maxSessionsPerUser: number
  readonly ends: SessionEnds
}

/** What functions by session id need. */
export interface SessionContext extends Pick<StoreContext, 'keys' | 'now' | 'idleSeconds'> {
  readonly runner: Pick<Runner, 'run'>
}

/** @throws TypeError as `createSessionStore`. */
export function createContext(options: SessionStoreOptions): StoreContext {
  checkOptions('a session store', options)
  checkOptionNames('a session store', options, storeOptionNames)
  checkOptionNames('tokens', options.tokens || undefined, tokensOptionNames)
  const {
    idleSeconds = 14 * 24 * 3600,
    maxSessionsPerUser = 100,
    prefix = '',
    maxInFlight = 1_000,
    deadlineMs = DEFAULT_DEADLINE_MS,
    keys: layout = articleKeys,
  } = options
  checkRange('maxSessionsPerUser', maxSessionsPerUser, { min: 1, integer: true })
  checkRange('idleSeconds', idleSeconds, { min: 0.001 })
  checkRange('maxInFlight', maxInFlight, { min: 1, integer: true })
  checkDeadline(deadlineMs)
  checkFunctions('keys', layout, Object.keys(articleKeys))
  const shared = {
    keys: prefixedKeys(prefix, layout),
    tokens: createTokens(options.tokens),
    now: options.tokens.clock ?? Date.now,
    idleSeconds,
    maxSessionsPerUser,
    deadlineMs,
  }
  const sender = chooseSender(options)
  const runner = createRunner(sender, { deadlineMs, maxInFlight })
  const ends = createSessionEnds({ ...shared, runner })
  return { ...shared, runner, ends }
}

/** Wraps async functions, so that `close` waits for their calls and rejects those that start later. */
export function callsOf<Functions extends Record<string, (...args: never[]) => Promise<unknown>>>(
  { runner }: Pick<StoreContext, 'runner'>,
  functions: Functions,
): Functions {
  const wrapped = Object.entries(functions).map(([name, call]) => [
    name,
    async (...args: never[]) => {
      runner.begin()
      try {
        return await call(...args)
      } finally {
        runner.end()
      }
    },
  ])
  return Object.fromEntries(wrapped)
}

/** @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended or is idle. */
export const requireActive = <Found extends Session>(
  context: StoreContext,
  session: Found | undefined,
): Found => requireSession(session && !isIdle(context, session) ? session : undefined)

/** @throws StoreError as `requireActive`. */
export const checkWith = async <Found extends Session>(
  context: StoreContext,
  operation: Operation<Found | undefined>,
): Promise<Found> => requireActive(context, await context.runner.run(operation))

/** @throws StoreError as `requireActive`. */
export const checkId = (context: StoreContext, id: string): Promise<Session> =>
  checkWith(context, checkToken(context.keys, id))

const contexts = new WeakMap<object, StoreContext>()

export const setContext = (store: object, context: StoreContext): void =>
  void contexts.set(store, context)

/** @throws TypeError unless `createSessionStore` created the store. */
export function contextOf(store: object): StoreContext {
  const context = contexts.get(store)
  if (context) return context
  throw new TypeError('the first argument must be a store created by createSessionStore')
}
