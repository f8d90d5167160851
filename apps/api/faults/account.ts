import { documentKeys } from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import type { View, Viewer } from './views.ts'

/**
 * Compares what Redis has with what the client was told.
 *
 * @returns what does not add up, in words; empty when for every item
 *   acknowledged ≤ stored ≤ acknowledged + unknown, and likewise for the items of every session.
 */
export async function discrepancies(redis: Redis, views: readonly View[]): Promise<string[]> {
  return [...(await ofItems(redis, views)), ...(await ofSessions(redis, views))]
}

async function ofItems(redis: Redis, views: readonly View[]): Promise<string[]> {
  const found: string[] = []
  const stored = new Map<string, number>()
  for (const key of documentKeys.allPopular()) {
    const entries = await redis.zrange(key, '0', '-1', 'WITHSCORES')
    for (let index = 0; index < entries.length; index += 2) {
      stored.set(entries[index] ?? '', -Number(entries[index + 1]))
    }
  }
  const viewed = Map.groupBy(views, ({ item }) => item)
  for (const item of new Set([...stored.keys(), ...viewed.keys()])) {
    const acknowledged = having('acknowledged', viewed.get(item)).length
    const unknown = having('unknown', viewed.get(item)).length
    const count = stored.get(item) ?? 0
    if (count < acknowledged || count > acknowledged + unknown) {
      found.push(`${item}: ${acknowledged} acknowledged, ${unknown} unknown, ${count} stored`)
    }
  }
  return found
}

async function ofSessions(redis: Redis, views: readonly View[]): Promise<string[]> {
  const found: string[] = []
  for (const [viewer, own] of Map.groupBy(views, ({ viewer }) => viewer)) {
    const stored = new Set(await redis.zrange(documentKeys.viewed(viewer.id), '0', '-1'))
    const acknowledged = itemsOf(having('acknowledged', own))
    const possible = itemsOf(having('unknown', own)).union(acknowledged)
    const lost = acknowledged.difference(stored)
    const invented = stored.difference(possible)
    if (lost.size > 0) found.push(`${viewer.user} lost ${[...lost].join(', ')}`)
    if (invented.size > 0) found.push(`${viewer.user} never viewed ${[...invented].join(', ')}`)
    found.push(...(await ofLogin(redis, viewer)))
  }
  return found
}

async function ofLogin(redis: Redis, { id, user }: Viewer): Promise<string[]> {
  const stored = await redis.hget(documentKeys.login(id), id)
  return stored === user ? [] : [`${user} is logged in as ${stored}`]
}

const having = (outcome: View['outcome'], views: readonly View[] = []) =>
  views.filter((view) => view.outcome === outcome)

const itemsOf = (views: readonly View[]) => new Set(views.map(({ item }) => item))
