import { publishWarning } from '../diagnostics.ts'
import type { Outcome } from '../outcomes.ts'
import type { Runner } from '../runner.ts'
import { parseInfo } from './redis-info.ts'

/** A warning is not worth a longer wait at the start. */
const MAX_WAIT_MS = 1_000

/**
 * Warns if this Redis may remove keys to make room; of a cluster, if one of its nodes may. Says nothing
 * where INFO is not allowed, or does not tell.
 */
export async function warnOfEviction(runner: Runner): Promise<void> {
  const read = ([reply]: readonly Outcome[]) => parseInfo(typeof reply === 'string' ? reply : '')
  const nodes = await runner.runOnEach([['INFO', 'memory']], read, MAX_WAIT_MS).catch(() => [])
  const policy = nodes
    .map(({ result }) => evictionPolicy(result))
    .find((found) => found !== undefined)
  if (policy === undefined) return
  // Only keys with an expiry: sessions have none.
  const lost = policy.startsWith('volatile-')
    ? "limits and the janitor's lock"
    : 'sessions, all of them at once with documentKeys'
  publishWarning({
    code: 'ONETRIP_EVICTION',
    message: `Redis has maxmemory-policy ${policy}: at maxmemory it removes ${lost}. Set maxmemory-policy noeviction`,
  })
}

/** The policy of a server that evicts keys. */
function evictionPolicy(info: ReadonlyMap<string, string> | undefined): string | undefined {
  const policy = info?.get('maxmemory_policy')
  return policy === 'noeviction' || Number(info?.get('maxmemory')) === 0 ? undefined : policy
}
