import { Redis } from 'ioredis'

/** The key that the generator's `{key}` stands for. */
export const keyName = (index: number) => `key:${String(index).padStart(12, '0')}`

const FILL = `for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', i), ARGV[2]) end`

/** Gives a server `count` keys, as the generator's `{key}` names them, with values of `bytes` bytes. */
export async function fillKeys(socket: string, count: number, bytes: number): Promise<void> {
  const client = new Redis(socket)
  await client.eval(FILL, 0, count, 'x'.repeat(bytes)).finally(() => client.disconnect())
}
