import { callsOf, createContext, setContext } from './context.ts'
import { lifecycleFunctions, serverFunctions } from './lifecycle.ts'
import type { DeclaredFields } from './operations/data.ts'
import type { SessionStoreOptions } from './options.ts'
import { loginFunctions } from './sessions/logins.ts'
import { ownSessionFunctions } from './sessions/own-sessions.ts'
import { dataFunctions } from './sessions/session-data.ts'
import { viewFunctions } from './sessions/views.ts'
import { sessionEndFunctions } from './sessions/watch.ts'
import { tokenFunctions } from './tokens/token-functions.ts'

/**
 * A store of logins, recent sessions and viewed items in Redis.
 *
 * The store checks the type and range of every argument, and the signature and expiry of every token, before
 * it sends anything. Every function may throw a `StoreError` with `ONETRIP_INVALID_INPUT` (a wrong value),
 * `ONETRIP_WRONG_TYPE` or a code of `run`; with a token also `ONETRIP_INVALID_TOKEN` or `ONETRIP_EXPIRED_TOKEN`.
 * The functions below document only further errors.
 *
 * `Fields`: the types of the data fields, which nothing checks at run time (`SessionData`). Default:
 * `SessionDataFields`.
 */
export interface SessionStore<Fields extends object = DeclaredFields>
  extends ReturnType<typeof viewFunctions<Fields>>,
    ReturnType<typeof loginFunctions<Fields>>,
    ReturnType<typeof ownSessionFunctions>,
    ReturnType<typeof dataFunctions<Fields>>,
    ReturnType<typeof sessionEndFunctions>,
    ReturnType<typeof tokenFunctions>,
    ReturnType<typeof serverFunctions>,
    ReturnType<typeof lifecycleFunctions> {}

/**
 * Creates a store of logins, recent sessions and viewed items in Redis. Runs a janitor until `close()`, unless
 * `janitor` is `'elsewhere'` or `false`. Warns (`onetrip:warning`) if the installed ioredis makes it take more CPU.
 *
 * @throws TypeError if an option does not exist, has a wrong type or is out of range, if the URL of Redis or
 *   a secret is invalid, or if the sender or the keys do not work with the other options.
 */
export function createSessionStore<Fields extends object = DeclaredFields>(
  options: SessionStoreOptions,
): SessionStore<Fields> {
  const context = createContext(options)
  // Not spread, because it has a getter.
  const store: SessionStore<Fields> = Object.assign(
    lifecycleFunctions(context, options),
    tokenFunctions(context),
    callsOf(context, {
      ...viewFunctions<Fields>(context),
      ...loginFunctions<Fields>(context),
      ...ownSessionFunctions(context),
      ...dataFunctions<Fields>(context),
      ...sessionEndFunctions(context),
      ...serverFunctions(context),
    }),
  )
  setContext(store, context)
  return store
}
