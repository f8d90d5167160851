import type { Operation } from '../command.ts'
import { requireSession, StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { type RepeatableView, recordViewOnce } from '../operations/view-once.ts'
import { undoView } from '../operations/views.ts'
import type { Runner } from '../redis/runner.ts'

interface Context {
  readonly runner: Runner
  readonly keys: Keys
}

const UNDO_FAILED =
  'the session has ended, and undoing its view failed: the item may still be counted'
const STILL_COUNTED =
  'the session does not exist or has ended; a view of an earlier call with this idempotency key may still be counted'

/** Records a view, and undoes it if the session has ended. */
export async function recordOrUndo<View>(
  { runner, keys }: Context,
  input: { id: string; item: string },
  view: Operation<View | undefined>,
): Promise<View> {
  const recorded = await runner.run(view)
  if (recorded === undefined) await undo(runner, undoView(keys, input))
  return requireSession(recorded)
}

/** The same with an idempotency key. @throws StoreError `ONETRIP_INVALID_INPUT` unless all keys are on one Redis. */
export async function recordOnce<View>(
  { runner, keys }: Context,
  input: RepeatableView,
  view: Operation<View | undefined>,
): Promise<View> {
  if (runner.sender.nodes || keys.parts().length > 1) {
    throw new StoreError('ONETRIP_INVALID_INPUT', 'an idempotency key needs all keys on one Redis')
  }
  const once = recordViewOnce(keys, input, view)
  const { view: recorded, isCounted } = await runner.run(once)
  if (recorded !== undefined) return recorded
  await undo(runner, undoView(keys, { id: input.id }))
  if (!isCounted) return requireSession<View>(undefined)
  throw new StoreError('ONETRIP_UNKNOWN_SESSION', STILL_COUNTED, { mayHaveWritten: true })
}

async function undo<Result>(runner: Runner, operation: Operation<Result>): Promise<Result> {
  try {
    return await runner.run(operation)
  } catch (cause) {
    throw new StoreError('ONETRIP_OUTCOME_UNKNOWN', UNDO_FAILED, { cause })
  }
}
