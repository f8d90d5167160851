import type { SessionStore } from '@onetrip/session-store'
import calculateSlot from 'cluster-key-slot'
import { idOf } from '../../session-store/test/fixture.ts'
import { partitionedKeys } from '../src/index.ts'

const keys = partitionedKeys()

/** The index of the node that has a key, in a cluster of three primaries whose slots have not moved. */
export const placeOf = (key: string) => Math.floor((calculateSlot(key) * 3) / 16_384)

/** An item whose views are counted on a node. */
export const itemOn = (place: number) =>
  Array.from({ length: 1_000 }, (_, index) => `item ${index}`).find(
    (item) => placeOf(keys.popular(item)) === place,
  ) ?? ''

/** Logs in until the session is on a node. */
export async function loginOn(store: SessionStore, place: number) {
  for (;;) {
    const session = await store.login('ada')
    if (placeOf(keys.login(idOf(session.token))) === place) return session
  }
}
