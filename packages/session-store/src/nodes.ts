import { setTimeout as delay } from 'node:timers/promises'
import { isRedirection } from './connections/cluster.ts'
import type { StoreError } from './errors.ts'
import type { Keys } from './keys.ts'
import { notSent, type Outcome, readOutcomes } from './outcomes.ts'
import type { Runner } from './runner.ts'
import type { Update } from './updates.ts'

/** A server that holds keys. */
export interface NodeState {
  /** `host:port`, or the path of its socket; `none` for slots of a cluster that no node has. */
  readonly node: string
  /** Why its keys cannot be used; absent: they can. */
  readonly error?: StoreError
}

/**
 * Asks every server that holds keys for one of them, as each view does. In a cluster that is down a node
 * refuses. One that does not have the key says which node has it: it would serve its own keys.
 *
 * @throws StoreError when no server serves.
 */
export async function pingNodes(
  runner: Runner,
  keys: Keys,
  timeoutMs: number,
): Promise<NodeState[]> {
  const update: Update<void> = {
    commands: [['HGET', keys.login('any'), 'any']],
    readOnly: true,
    read: () => undefined,
  }
  const read = (outcomes: readonly Outcome[]) => {
    if (!isRedirection(outcomes[0])) readOutcomes(update, outcomes)
  }
  const nodes = await runner.runOnEach(update.commands, read, timeoutMs)
  const states = nodes.map(({ node, error }) => ({ node, ...(error && { error }) }))
  const [first] = states
  if (first?.error && states.every(({ error }) => error)) throw first.error
  return states
}

const AGAIN_MS = 100

/**
 * Waits until a node of a cluster serves its keys: a client connects also to one that is down.
 *
 * @param until As `performance.now()`.
 * @throws StoreError `ONETRIP_NOT_SENT` when none does until then.
 */
export async function untilServed(runner: Runner, keys: Keys, until: number): Promise<void> {
  for (;;) {
    try {
      await pingNodes(runner, keys, Math.max(1, until - performance.now()))
      return
    } catch (error) {
      if (performance.now() >= until) throw notSent('no node of the cluster serves its keys', error)
    }
    await delay(AGAIN_MS)
  }
}
