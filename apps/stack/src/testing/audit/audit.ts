import { articleKeys, type Keys } from '@onetrip/session-store'
import type { Ledger, Viewed, Viewer } from './ledger.ts'

/** A Redis or cluster client with the commands that an audit needs. */
export interface AuditedRedis {
  hlen(key: string): Promise<number>
  hget(key: string, field: string): Promise<string | null>
  zrange(key: string, start: string, stop: string, withScores?: 'WITHSCORES'): Promise<string[]>
}

export interface Audit {
  /** Acknowledged views that Redis does not count. */
  lost: number
  /** Views that Redis counts in excess of those that were acknowledged or may have been written. */
  extra: number
  /** Descriptions of all differences; empty if there are none. */
  discrepancies: string[]
}

/**
 * Compares the data in Redis with the ledger of the clients: for every item, acknowledged ≤ stored ≤
 * acknowledged + unknown; the same for the items of every session; and whether sessions exist or have ended.
 */
export async function audit(
  redis: AuditedRedis,
  ledger: Ledger,
  keys: Keys = articleKeys,
): Promise<Audit> {
  const result: Audit = { lost: 0, extra: 0, discrepancies: [] }
  await auditItems(result, redis, ledger, keys)
  for (const [viewer, viewed] of ledger.sessions) {
    result.discrepancies.push(...(await ofSession(redis, viewer, viewed, keys)))
  }
  for (const id of ledger.ended) {
    const user = await redis.hget(keys.login(id), id)
    if (user !== null) result.discrepancies.push(`${user} logged out and is still logged in`)
  }
  result.discrepancies.push(...(await ofLogins(redis, ledger, keys)))
  return result
}

async function auditItems(
  result: Audit,
  redis: AuditedRedis,
  { items }: Ledger,
  keys: Keys,
): Promise<void> {
  const stored = new Map<string, number>()
  for (const key of keys.allPopular()) {
    const entries = await redis.zrange(key, '0', '-1', 'WITHSCORES')
    for (let index = 0; index < entries.length; index += 2) {
      stored.set(entries[index] ?? '', -Number(entries[index + 1]))
    }
  }
  for (const item of new Set([...stored.keys(), ...items.keys()])) {
    const { acknowledged, unknown } = items.get(item) ?? { acknowledged: 0, unknown: 0 }
    const count = stored.get(item) ?? 0
    const lost = Math.max(0, acknowledged - count)
    const extra = Math.max(0, count - acknowledged - unknown)
    if (lost === 0 && extra === 0) continue
    result.lost += lost
    result.extra += extra
    result.discrepancies.push(
      `${item}: ${acknowledged} acknowledged, ${unknown} unknown, ${count} stored`,
    )
  }
}

async function ofSession(
  redis: AuditedRedis,
  { id, user }: Viewer,
  { acknowledged, unknown }: Viewed,
  keys: Keys,
): Promise<string[]> {
  const stored = new Set(await redis.zrange(keys.viewed(id), '0', '-1'))
  const lost = acknowledged.difference(stored)
  const invented = stored.difference(acknowledged.union(unknown))
  const login = await redis.hget(keys.login(id), id)
  return [
    ...(lost.size > 0 ? [`${user} lost ${[...lost].join(', ')}`] : []),
    ...(invented.size > 0 ? [`${user} never viewed ${[...invented].join(', ')}`] : []),
    ...(login === user ? [] : [`${user} is logged in as ${login}`]),
  ]
}

async function ofLogins(
  redis: AuditedRedis,
  { sessions, uncertain }: Ledger,
  keys: Keys,
): Promise<string[]> {
  let stored = 0
  for (const { login } of keys.parts()) stored += await redis.hlen(login)
  if (stored >= sessions.size && stored <= sessions.size + uncertain) return []
  return [`${sessions.size} sessions, ${uncertain} uncertain, ${stored} stored`]
}
