import { contextOf } from '../src/context.ts'
import type { SessionStore } from '../src/index.ts'
import { updateToken } from '../src/operations/views.ts'

/** A token without a session. */
export const issueToken = (store: SessionStore): string => contextOf(store).tokens.issue()

/** `update_token` of the source articles: starts or refreshes the session of a token, and records a view. */
export async function runUpdateToken(
  store: SessionStore,
  token: string,
  user: string,
  item?: string,
): Promise<void> {
  const { keys, tokens, now } = contextOf(store)
  await store.run(updateToken(keys, { id: tokens.verify(token), user, item }, now()))
}
