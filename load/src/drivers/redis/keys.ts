import { Redis } from 'ioredis'

const AT_ONCE = 1_000

/** The key that the generator's `{key}` stands for. */
export const keyName = (index: number) => `key:${String(index).padStart(12, '0')}`

/** Gives a server `count` keys, as the generator's `{key}` names them, with values of `bytes` bytes. */
export async function fillKeys(
  { socket }: { socket: string },
  count: number,
  bytes: number,
): Promise<void> {
  const client = new Redis(socket)
  const value = 'x'.repeat(bytes)
  const entry = (index: number) => [keyName(index), value]
  try {
    for (let first = 0; first < count; first += AT_ONCE) {
      const length = Math.min(AT_ONCE, count - first)
      await client.mset(Array.from({ length }, (_, n) => entry(first + n)).flat())
    }
  } finally {
    client.disconnect()
  }
}
