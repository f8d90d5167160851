import type { Operation } from '../command.ts'
import { publishWarning } from '../diagnostics.ts'
import { runOnEach } from './nodes.ts'
import { parseInfo } from './redis-info.ts'
import type { Runner } from './runner.ts'

/** Short, because a mere warning must not delay the start. */
const MAX_WAIT_MS = 1_000

const readInfo: Operation<ReadonlyMap<string, string>> = {
  commands: [['INFO', 'memory']],
  readOnly: true,
  read: ([reply]) => parseInfo(String(reply)),
}

/**
 * Warns if Redis, or a node of a cluster, may evict keys. Does nothing if INFO is not allowed or lacks the
 * policy.
 */
export async function warnOfEviction(runner: Runner): Promise<void> {
  const nodes = await runOnEach(runner, readInfo, MAX_WAIT_MS).catch(() => [])
  const policy = nodes
    .map(({ result }) => evictionPolicy(result))
    .find((found) => found !== undefined)
  if (policy === undefined) return
  // volatile-* policies evict only keys with an expiry. The keys of sessions have none.
  const lost = policy.startsWith('volatile-')
    ? "counters of attempts, idempotency keys and the janitor's lock"
    : 'sessions; with articleKeys, all of them at once'
  publishWarning({
    code: 'ONETRIP_EVICTION',
    message: `Redis has maxmemory-policy ${policy}: at maxmemory it evicts ${lost}. Set maxmemory-policy noeviction`,
  })
}

/** The eviction policy; undefined if the server evicts no keys. */
function evictionPolicy(info: ReadonlyMap<string, string> | undefined): string | undefined {
  const policy = info?.get('maxmemory_policy')
  return policy === 'noeviction' || Number(info?.get('maxmemory')) === 0 ? undefined : policy
}
