import { Redis } from 'ioredis'

const AT_ONCE = 1_000

/** The key that the generator's `{key}` stands for. */
export function keyName(index: number): string {
  return `key:${String(index).padStart(12, '0')}`
}

/** Gives a server `count` keys, as the generator names them, with values of `bytes` bytes. */
export async function fillKeys(
  server: { socket: string },
  count: number,
  bytes: number,
): Promise<void> {
  const client = new Redis(server.socket)
  const value = 'x'.repeat(bytes)
  try {
    for (let first = 0; first < count; first += AT_ONCE) {
      const length = Math.min(AT_ONCE, count - first)
      await client.mset(Array.from({ length }, (_, n) => [keyName(first + n), value]).flat())
    }
  } finally {
    client.disconnect()
  }
}
