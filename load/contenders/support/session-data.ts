// What an application keeps in a session, for the contenders that have sessions instead of our store.

const KEPT_VIEWS = 25

// Keys that the API's user of our Redis may have (apps/server-build/users.acl), and no janitor sweeps.
export const SESSION_PREFIX = 'limit:sess:'
/** Sorted set: item → number of views. */
export const COUNTS = 'limit:popular'

export interface ViewedItem {
  item: string
  /** Milliseconds since 1970. */
  viewedAt: number
}

export interface SessionContent {
  user?: string
  /** Milliseconds since 1970. */
  lastSeenAt?: number
  /** Newest first. */
  views?: ViewedItem[]
}

/** The list with this view in front, each item once. */
export function withView(views: readonly ViewedItem[] = [], view: ViewedItem): ViewedItem[] {
  return [view, ...views.filter(({ item }) => item !== view.item)].slice(0, KEPT_VIEWS)
}
