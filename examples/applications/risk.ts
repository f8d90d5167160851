// Risk features of a payment's user, card, device and network. node risk.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { compare, run, type Send } from './compare.ts'

type Features = Readonly<Record<string, number>>

/** The article's way of reading: HGETALL, here of the four keys of a payment. */
export async function features(send: Send, keys: readonly string[]): Promise<Features[]> {
  const replies = (await send(keys.map((key) => ['HGETALL', key]))) as string[][]
  return replies.map((flat) =>
    Object.fromEntries(flat.flatMap((name, at) => (at % 2 ? [] : [[name, Number(flat[at + 1])]]))),
  )
}

/** The article's first level: a cache in this process. What it has is at most `maxAgeMs` old. */
export function localCache(maxAgeMs: number): typeof features {
  let [cache, until] = [new Map<string, Features>(), 0]
  return async (send, keys) => {
    if (performance.now() >= until) [cache, until] = [new Map(), performance.now() + maxAgeMs]
    const own = cache // of this call: another one may begin the next cache meanwhile
    const missing = keys.filter((key) => !own.has(key))
    const read = missing.length > 0 ? await features(send, missing) : []
    for (const [index, key] of missing.entries()) own.set(key, read[index] ?? {})
    return keys.map((key) => own.get(key) ?? {})
  }
}

/** Records a payment by HSET of what HGETALL read. Concurrent payments read the same: only one counts. */
export async function recordByHset(send: Send, keys: readonly string[], cents: number) {
  const known = await features(send, keys)
  const sums = known.map(({ payments = 0, spent = 0 }) => [payments + 1, spent + cents] as const)
  await send(sums.map(([n, sum], at) => ['HSET', keys[at] ?? '', 'payments', n, 'spent', sum]))
}

/**
 * Better: HINCRBY. Redis adds, so nothing is read before and no payment is lost. And payments can be added up here and
 * written later, the article's asynchronous writing. A crash loses those that are not written yet.
 */
export function writeBehind() {
  const pending = new Map<string, [key: string, name: string, by: number]>()
  return {
    add(key: string, name: string, by: number) {
      const [, , before = 0] = pending.get(`${key} ${name}`) ?? []
      pending.set(`${key} ${name}`, [key, name, before + by])
    },
    async flush(send: Send) {
      const sums = [...pending.values()]
      pending.clear() // also if sending fails: sent again, they could count twice
      await send(sums.map((sum) => ['HINCRBY', ...sum]))
    },
  }
}

if (import.meta.main) {
  const [id, cached, later] = [randomUUID(), localCache(100), writeBehind()]
  const keys = ['user', 'card', 'device', 'network'].map((kind) => `example:risk:${id}:${kind}`)
  void run(keys, async (redis) => {
    await compare(redis, 'HGETALL of 4 keys, checks', 1, (send) => features(send, keys))
    await compare(redis, '  with a local cache, checks', 1, (send) => cached(send, keys))
    await compare(redis, 'HGETALL and HSET, payments', 1, (send) => recordByHset(send, keys, 5))
    for (const size of [1, 100]) {
      await compare(redis, `HINCRBY, ${size} together, payments`, size, (send) => {
        for (const key of Array.from({ length: size }, () => keys).flat()) {
          later.add(key, 'payments', 1)
          later.add(key, 'spent', 5)
        }
        return later.flush(send)
      })
    }
    console.log('  recorded of the card:', await redis.hgetall(keys[1] ?? ''))
  })
}
