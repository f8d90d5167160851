import { createSessionStore, partitionedKeys } from '@onetrip/session-store'
import { itemName } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'

export interface Shape {
  sessions: number
  /** That each session viewed. */
  items: number
  /** Of the session's data: one field. 0 for none. */
  dataBytes: number
}

interface FillOptions {
  url: string
  partitions: number
  signal: AbortSignal
  /** Called after each twentieth. */
  progress(share: number): void
}

const IN_FLIGHT = 256
/** Sessions view these, each others of them, unless one views more than so many. */
const ITEMS = 1_000

/**
 * Logs users in, each once, has them view items, and writes data, by the store's own calls: the layout, the
 * encodings and the lengths are those of real sessions.
 *
 * @throws what a call throws; the reason of the signal.
 */
export async function fillStore(
  { sessions, items, dataBytes }: Shape,
  { url, partitions, signal, progress }: FillOptions,
): Promise<void> {
  const store = createSessionStore({
    ...{ url, keys: partitionedKeys(partitions), tokens: { secrets: [newSecret()] } },
    ...{ janitor: false, deadlineMs: 60_000 },
  })
  // As JSON it has two quotes.
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
