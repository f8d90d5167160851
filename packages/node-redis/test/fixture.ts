import { createSessionStore, type SessionStore } from '@onetrip/session-store'
import { onTestFinished } from 'vitest'

export const SECRET = 'a-secret-for-tests-a-secret-for-tests'

type Options = Partial<Parameters<typeof createSessionStore>[0]>

/** A store without a janitor, closed when the current test ends. */
export function newStore(options: Options): SessionStore {
  const tokens = { secrets: [SECRET] }
  const store = createSessionStore({ tokens, janitor: 'elsewhere', deadlineMs: 20_000, ...options })
  onTestFinished(() => store.close())
  return store
}
