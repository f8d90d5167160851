import { createContext, setContext } from './context.ts'
import { dataFunctions } from './data/session-data.ts'
import { operatingFunctions } from './operating.ts'
import { loginFunctions } from './sessions/logins.ts'
import { ownSessionFunctions } from './sessions/own-sessions.ts'
import { viewFunctions } from './sessions/record-view.ts'
import { userRecords } from './sessions/user-records.ts'
import type { SessionStoreOptions } from './store-options.ts'
import type { SessionStore } from './store-types.ts'

/**
 * Creates a store of logins, recent sessions and viewed items in Redis. Runs a janitor until `close()`, unless
 * `janitor` is `'elsewhere'` or `false`. Warns (`onetrip:warning`) if the installed ioredis makes it take more CPU.
 *
 * @throws TypeError if an option does not exist, has a wrong type or is out of range, if the URL of Redis or
 *   a secret is invalid, or if the strategy or the keys do not work with the other options.
 */
export function createSessionStore(options: SessionStoreOptions): SessionStore {
  const context = createContext(options)
  // Not spread, because it has a getter.
  const store: SessionStore = Object.assign(operatingFunctions(context, options), {
    ...viewFunctions(context),
    ...loginFunctions(context),
    ...ownSessionFunctions(context),
    ...dataFunctions(context),
    ...userRecords(context),
  })
  setContext(store, context)
  return store
}
