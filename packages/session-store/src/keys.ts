/**
 * The only speller of Redis key names. Another layout (hash tags for Redis Cluster) is another object
 * of this type; nothing else in the store knows a name.
 */
export interface Keys {
  /** Hash: session id → user. */
  login(id: string): string
  /** Sorted set: session id → last seen, Unix seconds with fraction. */
  recent(id: string): string
  /** Sorted set of one session: item → time of its last view, Unix seconds with fraction. */
  viewed(id: string): string
  /** Sorted set: item → minus the number of its views. */
  popular(item: string): string
  /** Every key that holds a part of the recent sessions. */
  allRecent(): readonly string[]
  /** Every key that holds a part of the item counts. */
  allPopular(): readonly string[]
}

/** The key names of the documents (Redis in Action), for one Redis. */
export const documentKeys: Keys = {
  login: () => 'login:',
  recent: () => 'recent:',
  viewed: (id) => `viewed:${id}`,
  popular: () => 'viewed:',
  allRecent: () => ['recent:'],
  allPopular: () => ['viewed:'],
}
