import type { Dispatcher } from 'undici'
import { send } from './client.ts'
import type { View, Viewer } from './ledger.ts'

/** The session of a token. */
export const viewerOf = (user: string, token: string): Viewer => {
  return { user, token, id: token.slice(0, token.indexOf('.')) }
}

/**
 * Sends one view.
 *
 * @throws Error if the response is that of another view; also as `send`.
 */
export async function sendView(
  url: string,
  viewer: Viewer,
  item: string,
  dispatcher?: Dispatcher,
): Promise<View> {
  const { user, token } = viewer
  const call = { path: '/views', token, body: { item } }
  const { body, ...answer } = await send<{ user?: string; item?: string }>(url, call, dispatcher)
  // Detects swapped replies of concurrent views.
  if (body && (body.user !== user || body.item !== item)) {
    throw new Error(`${user} viewed ${item} but got the response ${JSON.stringify(body)}`)
  }
  return { viewer, item, ...answer }
}
