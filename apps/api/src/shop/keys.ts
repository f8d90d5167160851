/** The beginning of all keys of risk features, and of no others. */
export const RISK_KEYS = 'risk:'

/**
 * The keys of the shop's applications, which no other file spells. All that belongs to an item, or to a
 * user, is in one key: an update of it needs one slot of a cluster, without hash tags.
 */
export const shopKeys = {
  /** Hash: user → when they bought, in milliseconds since 1970; the empty field: how many are left. */
  sale: (item: string) => `sale:${item}`,
  /** List: entries of the user's feed, the newest first; without a user: of everybody's. */
  feed: (user = '') => `feed:${user}`,
  /** String: the bits of the Bloom filter that holds the item's viewers. */
  viewers: (item: string) => `viewers:${item}`,
  /** Hash: the user's risk features. */
  risk: (user: string) => `${RISK_KEYS}${user}`,
}
