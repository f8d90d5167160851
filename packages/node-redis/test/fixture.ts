import { SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import { onTestFinished } from 'vitest'

export const SECRET = 'a-secret-for-tests-a-secret-for-tests'

type Options = Partial<SessionStoreOptions>

/** A store without a janitor, closed when the current test ends. */
export function newStore(options: Options): SessionStore {
  const tokens = { secrets: [SECRET] }
  const store = new SessionStore({ tokens, janitor: 'elsewhere', deadlineMs: 20_000, ...options })
  onTestFinished(() => store.close())
  return store
}
