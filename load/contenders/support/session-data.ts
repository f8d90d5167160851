// The content of a session, for the contenders with sessions instead of our store.

const KEPT_VIEWS = 25

// The prefix `limit:` is permitted for the API's Redis user (apps/server-build/users.acl). The janitor ignores it.
export const SESSION_PREFIX = 'limit:sess:'
/** Sorted set: items, scored by number of views. */
export const COUNTS = 'limit:popular'

export interface ViewedItem {
  item: string
  /** Unix time in milliseconds. */
  viewedAt: number
}

export interface SessionContent {
  user?: string
  /** Unix time in milliseconds. */
  lastSeenAt?: number
  /** Newest first. */
  views?: ViewedItem[]
}

/** Puts a view at the front of the list and removes an earlier view of the same item. */
export function withView(views: readonly ViewedItem[] = [], view: ViewedItem): ViewedItem[] {
  return [view, ...views.filter(({ item }) => item !== view.item)].slice(0, KEPT_VIEWS)
}
