import { setTimeout as delay } from 'node:timers/promises'
import type { Operation } from '../command.ts'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { errorKind, isNotSent, notSent } from './outcomes.ts'
import type { NodeResult, Runner } from './runner.ts'

type NodeRunner = Pick<Runner, 'nodes' | 'runOn'>

/**
 * Runs a read-only operation on each server that holds keys. A server that fails, or has not replied after
 * `timeoutMs`, has an error instead of a result.
 *
 * @throws StoreError as `Runner.run`, if the servers are not known.
 */
export async function runOnEach<Result>(
  runner: NodeRunner,
  operation: Operation<Result>,
  timeoutMs: number,
): Promise<NodeResult<Result>[]> {
  const until = performance.now() + timeoutMs
  const nodes = await runner.nodes(timeoutMs)
  const left = Math.max(1, until - performance.now())
  return await Promise.all(
    nodes.map((node) =>
      runner.runOn(node, operation, left).then(
        (result) => ({ node: node.name, result }),
        (error: StoreError) => ({ node: node.name, error }),
      ),
    ),
  )
}

/** A server that holds keys. */
export interface NodeState {
  /** `host:port`, or the path of a Unix socket; `none` for slots of a cluster without a node. */
  readonly node: string
  /** Why the server does not serve its keys; absent if it does. */
  readonly error?: StoreError
}

/**
 * Reads a key on every server that holds keys. Unlike PING, this fails on a node whose cluster is down.
 *
 * @throws StoreError if no server serves its keys.
 */
export async function pingNodes(
  { runner, keys }: { runner: Runner; keys: Keys },
  timeoutMs: number,
): Promise<NodeState[]> {
  const readKey: Operation<void> = {
    commands: [['HGET', keys.login('any'), 'any']],
    readOnly: true,
    read: () => undefined,
  }
  const nodes = await runOnEach(runner, readKey, timeoutMs)
  const states = nodes.map(({ node, error }) => ({ node, ...(error && { error }) }))
  const [first] = states
  if (first?.error && states.every(({ error }) => error)) throw first.error
  return states
}

/** Pause between two checks of whether Redis is ready. */
const PING_INTERVAL_MS = 50

/**
 * Waits until a server serves its keys. (A client also connects to a cluster that is down.)
 *
 * @throws StoreError `ONETRIP_NOT_SENT` if none does until `timeoutMs` have passed, or if the store closes;
 *   `ONETRIP_REFUSED` if Redis refuses the keys, and waiting does not help.
 */
export async function untilServed(
  context: { runner: Runner; keys: Keys },
  timeoutMs: number,
): Promise<void> {
  const { runner } = context
  const until = performance.now() + timeoutMs
  let reason: StoreError | undefined
  do {
    try {
      return void (await pingNodes(context, Math.max(1, until - performance.now())))
    } catch (error) {
      const kind = refusalKind(error)
      if (kind === 'WRONGTYPE') return // `checkKeyTypes` names the key
      if (kind !== undefined && !TEMPORARY.has(kind)) throw error
      // The last attempt has hardly any time: an earlier one says more.
      if (reason === undefined || isNotSent(error)) reason = error as StoreError
    }
    await delay(PING_INTERVAL_MS)
    if (runner.closing.aborted) throw notSent('the store is closed')
  } while (performance.now() < until)
  const after = `after ${timeoutMs / 1000} s`
  if (!isNotSent(reason)) throw notSent(`no usable reply ${after}`, reason)
  throw notSent(
    `no connection ${after}`,
    (await runner.sender.topology?.whyNotReady?.()) ?? reason.cause,
  )
}

/** Errors of a server, or of its cluster, that is not ready yet. Any other one will not go away by itself. */
const TEMPORARY = new Set(['BUSY', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'TRYAGAIN'])

const refusalKind = (error: unknown): string | undefined =>
  error instanceof StoreError && error.code === 'ONETRIP_REFUSED'
    ? errorKind(error.cause as Error)
    : undefined
