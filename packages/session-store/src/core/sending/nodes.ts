import { setTimeout as delay } from 'node:timers/promises'
import { isRedirection } from '../../cluster/redirections.ts'
import type { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Update } from '../operations.ts'
import { notSent, type Outcome, readOutcomes } from '../outcomes.ts'
import { PING_INTERVAL_MS, type Runner } from './runner.ts'

/** A server that holds keys. */
export interface NodeState {
  /** `host:port`, or the path of a Unix socket; `none` for slots of a cluster without a node. */
  readonly node: string
  /** Why the server does not serve its keys; absent if it does. */
  readonly error?: StoreError
}

/**
 * Reads a key on every server that holds keys. Unlike PING, this fails on a node whose cluster is down. A
 * redirection counts as success: the node serves its own keys.
 *
 * @param clustered Whether Redis is a cluster; without one, a redirection counts as a failure.
 * @throws StoreError if no server serves its keys.
 */
export async function pingNodes(
  { runner, keys, clustered }: { runner: Runner; keys: Keys; clustered: boolean },
  timeoutMs: number,
): Promise<NodeState[]> {
  const update: Update<void> = {
    commands: [['HGET', keys.login('any'), 'any']],
    readOnly: true,
    read: () => undefined,
  }
  const read = (outcomes: readonly Outcome[]) => {
    if (!(clustered && isRedirection(outcomes[0]))) readOutcomes(update, outcomes)
  }
  const nodes = await runner.runOnEach(update.commands, read, timeoutMs)
  const states = nodes.map(({ node, error }) => ({ node, ...(error && { error }) }))
  const [first] = states
  if (first?.error && states.every(({ error }) => error)) throw first.error
  return states
}

/**
 * Waits until a node of a cluster serves its keys. (A client also connects to a cluster that is down.)
 *
 * @param until The time limit, as returned by `performance.now()`.
 * @throws StoreError `ONETRIP_NOT_SENT` if no node does until then.
 */
export async function untilServed(
  context: { runner: Runner; keys: Keys },
  until: number,
): Promise<void> {
  for (;;) {
    try {
      await pingNodes({ ...context, clustered: true }, Math.max(1, until - performance.now()))
      return
    } catch (error) {
      if (performance.now() >= until) throw notSent('no node of the cluster serves its keys', error)
    }
    await delay(PING_INTERVAL_MS)
  }
}
