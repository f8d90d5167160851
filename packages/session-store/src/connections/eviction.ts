import { setTimeout as delay } from 'node:timers/promises'
import { publishWarning } from '../diagnostics.ts'
import type { Runner } from '../runner.ts'
import type { Update } from '../updates.ts'
import { parseInfo } from './redis-info.ts'

const memoryOfRedis: Update<ReadonlyMap<string, string>> = {
  commands: [['INFO', 'memory']],
  readOnly: true,
  read: ([reply]) => parseInfo(String(reply)),
}

/** A warning is not worth a longer wait at the start. */
const MAX_WAIT_MS = 1_000

/**
 * Warns if this Redis may remove keys to make room. Asks one server: of a cluster, one of its nodes.
 * Says nothing where INFO is not allowed, or does not tell.
 */
export async function warnOfEviction(runner: Runner): Promise<void> {
  const late = delay(MAX_WAIT_MS, undefined, { ref: false })
  const info = await Promise.race([runner.run(memoryOfRedis).catch(() => undefined), late])
  const policy = info?.get('maxmemory_policy')
  if (policy === undefined || policy === 'noeviction' || Number(info?.get('maxmemory')) === 0)
    return
  // Only keys with an expiry: sessions have none.
  const lost = policy.startsWith('volatile-')
    ? "limits and the janitor's lock"
    : 'sessions, all of them at once with documentKeys'
  publishWarning({
    code: 'ONETRIP_EVICTION',
    message: `Redis has maxmemory-policy ${policy}: at maxmemory it removes ${lost}. Set maxmemory-policy noeviction`,
  })
}
