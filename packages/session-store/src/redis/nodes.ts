import type { Operation } from '../command.ts'
import type { StoreError } from '../errors.ts'
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
  /** `host:port`, or the path of a Unix socket; `none` for keys that no server has. */
  readonly node: string
  /** Why the server does not serve its keys; absent if it does. */
  readonly error?: StoreError
  /**
   * Why the server executes reads but no write, as the first word of its error: `READONLY` (a replica), `MISCONF` (the
   * disk is full), `OOM` (the memory is full) or `NOREPLICAS`.
   */
  readonly refusesWrites?: string
}
