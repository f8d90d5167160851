import { createSessionStore, partitionedKeys } from '@onetrip/session-store'
import { itemName } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'

export interface Shape {
  sessions: number
  /** Items viewed by each session. */
  items: number
  /** Size of the session's data, which is one field; 0 for no data. */
  dataBytes: number
}

interface FillOptions {
  url: string
  partitions: number
  signal: AbortSignal
  /** Called about 20 times. @param share 0 to 1. */
  progress(share: number): void
}

const IN_FLIGHT = 256
/** The number of different items, unless a session views more. */
const ITEMS = 1_000

/**
 * Logs users in, records views and writes data with the store's own calls, so that keys, encodings and lengths are
 * those of real sessions.
 *
 * @throws the error of a call; the reason of the signal.
 */
export async function fillStore(
  { sessions, items, dataBytes }: Shape,
  { url, partitions, signal, progress }: FillOptions,
): Promise<void> {
  const store = createSessionStore({
    ...{ url, keys: partitionedKeys(partitions), tokens: { secrets: [newSecret()] } },
    ...{ janitor: 'elsewhere', deadlineMs: 60_000 },
  })
  // JSON adds two quotes.
  const basket = dataBytes > 0 ? 'x'.repeat(Math.max(0, dataBytes - 2)) : null
  let next = 0
  const fill = async () => {
    for (let number = next++; number < sessions; number = next++) {
      signal.throwIfAborted()
      if (number % Math.ceil(sessions / 20) === 0) progress(number / sessions)
      const { token } = await store.login(`user-${number}`)
      for (let view = 0; view < items; view++) {
        const item = number * items + view
        await store.recordView(token, itemName(items > ITEMS ? item : item % ITEMS))
      }
      if (basket !== null) await store.patch(token, { basket })
    }
  }
  try {
    await store.ready()
    await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, sessions) }, fill))
  } finally {
    await store.close()
  }
}
