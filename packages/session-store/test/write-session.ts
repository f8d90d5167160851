import type { SessionStore } from '../src/index.ts'
import { issuedAt } from '../src/tokens/tokens.ts'
import { writeSession } from '../src/views/record.ts'
import { idOf } from './fixture.ts'

/** A token without a session. */
export const issueToken = (store: SessionStore): string => store.tokens.issue()

/** `update_token` of Redis in Action: starts or refreshes the session of a token, and records a view. */
export async function runWriteSession(
  store: SessionStore,
  token: string,
  user: string,
  item?: string,
): Promise<void> {
  const { keys, tokens } = store
  const now = issuedAt(idOf(tokens.issue())) ?? 0 // by the clock of the store
  await store.run(writeSession(keys, { id: tokens.verify(token), user, item }, now))
}
