import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Command, type Operation, repeatable } from '@onetrip/session-store'
import { Counter } from 'prom-client'
import { bloomFilter } from './bloom-filter.ts'
import { shopKeys } from './keys.ts'
import { ItemParams, Viewer, Viewers } from './schemas.ts'

// Unique viewers of an item ("viewed by 17 people"), with a Bloom filter per item.

/** 12 kB per item. Up to 10,000 viewers, at most 1 in 100 new viewers counts as seen before. */
export const filter = bloomFilter({ capacity: 10_000, falsePositiveRate: 0.01 })

/** Expiry of an item's filter after its last viewer: a week. */
const VIEWERS_SECONDS = 604_800

export interface Seen {
  /** Whether the user viewed the item before. Never false for such a user; rarely true for a new one. */
  seenBefore: boolean
  /** Estimated number of viewers, including this one. */
  viewers: number
}

/**
 * Adds the user to the viewers of the item, and returns whether the user was one before. Sends one SETBIT per
 * hash, whose reply is the old bit. The count is estimated from the bits set; a separate counter could become
 * wrong after a failure. Idempotent. Keys: viewers.
 */
export function seeItem(item: string, user: string): Operation<Seen> {
  const key = shopKeys.viewers(item)
  return {
    commands: [
      ...filter.positions(user).map((position): Command => ['SETBIT', key, position, 1]),
      ['BITCOUNT', key],
      ['EXPIRE', key, VIEWERS_SECONDS],
    ],
    readOnly: false,
    read: (replies) => ({
      seenBefore: replies.slice(0, filter.hashes).every((oldBit) => oldBit === 1),
      viewers: filter.count(Number(replies[filter.hashes])),
    }),
  }
}

/** Estimates the number of viewers of the item. Keys: viewers. */
function viewersOf(item: string): Operation<number> {
  return {
    commands: [['BITCOUNT', shopKeys.viewers(item)]],
    readOnly: true,
    read: ([bitsSet]) => filter.count(Number(bitsSet)),
  }
}

export const viewersRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['shop']
  const views = new Counter({
    name: 'onetrip_unique_views_total',
    help: 'Views recorded by POST /items/:item/viewers, by result: new or seen (same user again)',
    labelNames: ['result'],
    registers: [app.metrics],
  })
  for (const result of ['new', 'seen']) views.inc({ result }, 0)

  app.post(
    '/items/:item/viewers',
    {
      schema: {
        operationId: 'seeItem',
        summary: 'Count the user as a viewer of an item',
        description:
          'Idempotent: a user counts once. Uses a Bloom filter: when an item has 10,000 viewers, about 1 in 100 new viewers counts as seen before.',
        tags,
        params: ItemParams,
        response: { 200: Viewer },
      },
    },
    async ({ params: { item }, user }) => {
      const seen = await store.run(seeItem(item, user)).catch((error: unknown) => {
        throw repeatable(error)
      })
      views.inc({ result: seen.seenBefore ? 'seen' : 'new' })
      return { item, ...seen }
    },
  )

  app.get(
    '/items/:item/viewers',
    {
      schema: {
        operationId: 'countViewers',
        summary: 'Estimate how many users viewed an item',
        tags,
        params: ItemParams,
        response: { 200: Viewers },
      },
    },
    async ({ params: { item } }) => ({ item, viewers: await store.run(viewersOf(item)) }),
  )
}
