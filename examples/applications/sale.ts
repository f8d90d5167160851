// A flash sale that never sells one piece too many. node sale.ts [redis://host:port], see docs/applications.md
import { randomUUID } from 'node:crypto'
import { type Command, compare, run } from './compare.ts'

const PIECES = 50
const BUYERS = 100

/** The commands of a sale. The reply to `buy` is the number of pieces left, or -1: sold out. */
export interface Sale {
  name: string
  open(pieces: number): readonly Command[]
  buy(buyer: string): Command
  left(): Command
}

/**
 * The article's way: DECR in a script. DECR alone would go below zero, and a GET before it would sell too many, because
 * concurrent buyers see the same number. A script runs alone. KEYS: pieces left.
 */
const DECR = `
if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then return -1 end
return redis.call('DECR', KEYS[1])`

export const decrSale = (key: string): Sale => ({
  name: 'DECR',
  open: (pieces) => [['SET', key, pieces]],
  buy: () => ['EVAL', DECR, 1, key],
  left: () => ['GET', key],
})

/**
 * Better: HINCRBY, with pieces and buyers in one hash. A buyer gets one piece, also if the request is repeated because
 * its reply was lost: with DECR it takes another piece. And it is known who bought. KEYS: sale. ARGV: buyer, time.
 */
const HINCRBY = `
local left = tonumber(redis.call('HGET', KEYS[1], 'left') or 0)
if redis.call('HEXISTS', KEYS[1], 'buyer ' .. ARGV[1]) == 1 then return left end
if left < 1 then return -1 end
redis.call('HSET', KEYS[1], 'buyer ' .. ARGV[1], ARGV[2])
return redis.call('HINCRBY', KEYS[1], 'left', -1)`

export const hincrbySale = (key: string): Sale => ({
  name: 'HINCRBY',
  open: (pieces) => [
    ['DEL', key],
    ['HSET', key, 'left', pieces],
  ],
  buy: (buyer) => ['EVAL', HINCRBY, 1, key, buyer, Date.now()],
  left: () => ['HGET', key, 'left'],
})

if (import.meta.main) {
  const key = `example:sale:${randomUUID()}`
  const buyers = Array.from({ length: BUYERS }, (_, index) => `${index}`)
  void run([`${key}:decr`, `${key}:hincrby`], async (redis) => {
    for (const sale of [decrSale(`${key}:decr`), hincrbySale(`${key}:hincrby`)]) {
      const opened = sale.open(PIECES)
      let sales = 0
      await compare(redis, `${sale.name} in a script, buyers`, BUYERS, async (send) => {
        const replies = await send([...opened, ...buyers.map(sale.buy), sale.left()])
        const sold = replies.slice(opened.length, -1).filter((left) => Number(left) >= 0).length
        if (sold !== PIECES || Number(replies.at(-1)) !== 0) throw new Error(`Sold ${sold} pieces`)
        sales += 1
      })
      console.log(`  ${sales} sales of ${PIECES} pieces to ${BUYERS} buyers: each sold ${PIECES}`)
    }
  })
}
