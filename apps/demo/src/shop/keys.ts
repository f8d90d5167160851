/** Prefix of the keys of risk features. No other key has it. */
export const RISK_KEYS = 'risk:'

/**
 * Keys of the shop's applications; no other file contains key names. The data of an item or a user is in one
 * key, so an operation needs one slot of a cluster, without hash tags.
 */
export const shopKeys = {
  /** Hash: user → time of the purchase in milliseconds since 1970. The empty field: items left. */
  sale: (item: string) => `sale:${item}`,
  /** List: entries of the user's feed, newest first. Without a user: the feed of all users. */
  feed: (user = '') => `feed:${user}`,
  /** String: bits of the Bloom filter of the item's viewers. */
  viewers: (item: string) => `viewers:${item}`,
  /** Hash: the user's risk features. */
  risk: (user: string) => `${RISK_KEYS}${user}`,
}
