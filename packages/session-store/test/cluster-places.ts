import calculateSlot from 'cluster-key-slot'
import { partitionedKeys, type SessionStore } from '../src/index.ts'

const keys = partitionedKeys()

/** The place of the node that has this key, in a cluster of three primaries whose slots have not moved. */
export const placeOf = (key: string) => Math.floor((calculateSlot(key) * 3) / 16_384)

/** An item that is counted on this node. */
export const itemOn = (place: number) =>
  Array.from({ length: 1_000 }, (_, index) => `item ${index}`).find(
    (item) => placeOf(keys.popular(item)) === place,
  ) ?? ''

/** A session that is on this node. */
export async function loginOn(store: SessionStore, place: number) {
  for (;;) {
    const session = await store.login('ada')
    if (placeOf(keys.login(session.token.split('.')[0] ?? '')) === place) return session
  }
}
