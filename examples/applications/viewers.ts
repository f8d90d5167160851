// Unique viewers: has a user seen this item before? node viewers.ts [redis://host:port], see docs/applications.md
import { createHash, randomUUID } from 'node:crypto'
import { type Command, compare, run } from './compare.ts'

// A Bloom filter of 72 kB. Of 10^12 new viewers, it takes one for a viewer that it has.
const CAPACITY = 10_000
const BITS = Math.ceil((CAPACITY * -Math.log(1e-12)) / Math.LN2 ** 2)
const HASHES = Math.round((BITS / CAPACITY) * Math.LN2)

/** The bits of a viewer: several dozen, derived from two hashes (Dillinger and Manolios, 2004). */
function positions(viewer: string): number[] {
  const digest = createHash('sha256').update(viewer).digest()
  let [position, step] = [digest.readUIntBE(0, 6) % BITS, digest.readUIntBE(6, 6) % BITS]
  return Array.from({ length: HASHES }, (_, index) => {
    const bit = position
    position = (position + step) % BITS
    step = (step + index + 1) % BITS
    return bit
  })
}

/** The commands of a filter. Their replies are bits: those before `add`, or those that `find` reads. */
export interface Filter {
  names: readonly [add: string, find: string]
  add(viewer: string): Command[]
  find(viewer: string): Command[]
}

/** The article's way: a SETBIT or GETBIT for each bit. */
export const setbitFilter = (key: string): Filter => ({
  names: [`${HASHES} SETBITs`, `${HASHES} GETBITs`],
  add: (viewer) => positions(viewer).map((bit) => ['SETBIT', key, bit, 1]),
  find: (viewer) => positions(viewer).map((bit) => ['GETBIT', key, bit]),
})

/**
 * Better: BITFIELD sets or reads all bits in one command, which the article misses: SETBIT has no batch form. It takes
 * one round trip also without a pipeline, and nothing comes in between: of two first views of a user at the same time,
 * exactly one is new.
 */
export const bitfieldFilter = (key: string): Filter => ({
  names: ['BITFIELD SET', 'BITFIELD GET'],
  add: (viewer) => [
    ['BITFIELD', key, ...positions(viewer).flatMap((bit) => ['SET', 'u1', bit, 1])],
  ],
  find: (viewer) => [['BITFIELD', key, ...positions(viewer).flatMap((bit) => ['GET', 'u1', bit])]],
})

/** Whether a viewer was seen before: all its bits were set. Never false for one that was. */
export const isSeen = (replies: readonly unknown[]) => replies.flat().every((bit) => bit === 1)

if (import.meta.main) {
  const key = `example:viewers:${randomUUID()}`
  void run([`${key}:setbit`, `${key}:bitfield`], async (redis) => {
    for (const filter of [setbitFilter(`${key}:setbit`), bitfieldFilter(`${key}:bitfield`)]) {
      const [add, find] = filter.names
      let [views, asked, found] = [0, 0, 0]
      await compare(redis, `${add}, viewers`, 1, (send) =>
        send(filter.add(`viewer ${views++ % CAPACITY}`)),
      )
      const viewers = Math.min(views, CAPACITY)
      await compare(redis, `${find}, viewers`, 1, async (send) => {
        const name = asked % 2 === 0 ? 'viewer' : 'stranger'
        if (isSeen(await send(filter.find(`${name} ${asked++ % viewers}`)))) found += 1
      })
      console.log(
        `  ${viewers} viewers; asked for ${asked}, half of them strangers: found ${found}`,
      )
    }
  })
}
