import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@onetrip/api'
import { type Operation, type Reply, repeatable } from '@onetrip/session-store'
import { Counter } from 'prom-client'
import { soldOut } from '../errors.ts'
import { shopKeys } from './keys.ts'
import { ItemParams, Purchase, Stock, StockBody } from './schemas.ts'

// The flash sale: a limited stock, one piece per buyer, sold by a script.

/** Duration of a sale after its stock was last set; then its key expires. */
const SALE_SECONDS = 86_400

/** Field of the pieces left. No user has an empty name. */
export const LEFT = ''

interface Bought {
  /** Milliseconds since 1970. For a repeated purchase: the time of the first one. */
  boughtAt: number
  /** Pieces left. */
  left: number
  /** False for a repeated purchase. */
  isNew: boolean
}

type Outcome = Bought | 'sold out' | 'not on sale'

/**
 * KEYS: sale. ARGV: user, time. Returns the time of the user's purchase (or nil), pieces left, and 1 if sold
 * now.
 */
const BUY = `
local left = tonumber(redis.call('HGET', KEYS[1], '${LEFT}'))
if not left then return end
local at = redis.call('HGET', KEYS[1], ARGV[1])
if at or left < 1 then return { at, left, 0 } end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return { ARGV[2], redis.call('HINCRBY', KEYS[1], '${LEFT}', -1), 1 }`

/**
 * Sells a piece in one round trip. Never oversells; a buyer gets at most one. Idempotent: a retry returns the
 * first purchase. Keys: sale.
 */
export function buy(item: string, user: string, now: number): Operation<Outcome> {
  return {
    commands: [['EVAL', BUY, 1, shopKeys.sale(item), user, now]],
    readOnly: false,
    read([reply]) {
      if (reply === null) return 'not on sale'
      const [boughtAt = null, left, isNew] = reply as readonly Reply[]
      if (boughtAt === null) return 'sold out'
      return { boughtAt: Number(boughtAt), left: Number(left), isNew: isNew === 1 }
    },
  }
}

interface Sale {
  left: number
  sold: number
}

/** KEYS: sale. ARGV: pieces, expiry in seconds. Returns pieces left and sold. */
const STOCK = `
local sold = redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], '${LEFT}')
local left = math.max(0, ARGV[1] - sold)
redis.call('HSET', KEYS[1], '${LEFT}', left)
redis.call('EXPIRE', KEYS[1], ARGV[2])
return { left, sold }`

/**
 * Sets the number of pieces on sale, including those already sold. Idempotent, also during a sale: the pieces
 * left are computed from the buyers. Keys: sale.
 */
export function setStock(item: string, pieces: number): Operation<Sale> {
  return {
    commands: [['EVAL', STOCK, 1, shopKeys.sale(item), pieces, SALE_SECONDS]],
    readOnly: false,
    read([reply]) {
      const [left, sold] = reply as readonly Reply[]
      return { left: Number(left), sold: Number(sold) }
    },
  }
}

/** Reads the pieces left and sold; undefined if the item is not on sale. Keys: sale. */
function readStock(item: string): Operation<Sale | undefined> {
  const key = shopKeys.sale(item)
  return {
    commands: [
      ['HGET', key, LEFT],
      ['HLEN', key],
    ],
    readOnly: true,
    read: ([left, fields]) =>
      left === null ? undefined : { left: Number(left), sold: Number(fields) - 1 },
  }
}

export const saleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['shop']
  const notOnSale = () => new ApiError('API_NOT_FOUND', 'this item is not on sale')
  const purchases = new Counter({
    name: 'onetrip_sale_purchases_total',
    help: 'Purchases by result: bought, repeated (by the same buyer) or sold_out',
    labelNames: ['result'],
    registers: [app.metrics],
  })
  for (const result of ['bought', 'repeated', 'sold_out']) purchases.inc({ result }, 0)

  app.put(
    '/items/:item/stock',
    {
      schema: {
        operationId: 'setStock',
        summary: 'Put pieces of an item on sale',
        description: 'The number includes pieces already sold. The sale ends after one day.',
        tags,
        params: ItemParams,
        body: StockBody,
        response: { 200: Stock },
      },
    },
    async (request) => {
      const { item } = request.params
      return { item, ...(await store.run(setStock(item, request.body.pieces))) }
    },
  )

  app.get(
    '/items/:item/stock',
    {
      schema: {
        operationId: 'getStock',
        summary: 'Get the stock of an item',
        tags,
        params: ItemParams,
        response: { 200: Stock },
      },
    },
    async (request) => {
      const { item } = request.params
      const sale = await store.run(readStock(item))
      if (sale === undefined) throw notOnSale()
      return { item, ...sale }
    },
  )

  app.post(
    '/items/:item/purchases',
    {
      schema: {
        operationId: 'buy',
        summary: 'Buy a piece of an item that is on sale',
        description:
          'One per user. Idempotent: a repeated purchase gets the response of the first one, so it is safe to retry.',
        tags,
        params: ItemParams,
        response: { 200: Purchase },
      },
    },
    async (request) => {
      const { item } = request.params
      const outcome = await store.run(buy(item, request.user, Date.now())).catch((error) => {
        throw repeatable(error)
      })
      if (outcome === 'not on sale') throw notOnSale()
      if (outcome === 'sold out') {
        purchases.inc({ result: 'sold_out' })
        throw new ApiError(soldOut)
      }
      const { boughtAt, left, isNew } = outcome
      purchases.inc({ result: isNew ? 'bought' : 'repeated' })
      return { item, boughtAt, left }
    },
  )
}
