import type { NamedOperation, Operation } from '../command.ts'
import type { StoreContext } from '../context.ts'
import { repeatable, requireSession, StoreError } from '../errors.ts'
import { checkKey, checkLimit, checkName } from '../input.ts'
import { type MaybeData, withDataIf } from '../operations/data.ts'
import { type RepeatableView, recordViewOnce, undoViewOnce } from '../operations/view-once.ts'
import {
  type PopularItem,
  popularItems,
  type RecordedView,
  recordView,
  undoView,
  type ViewCommands,
  type ViewedItem,
  viewedItems,
} from '../operations/views.ts'
import type { ViewOptions } from '../options.ts'

/** The functions of the store that record and list views. */
export function viewFunctions<Fields extends object>({ runner, keys, tokens, now }: StoreContext) {
  const { run } = runner
  /** Whether a script can use the keys of a session and of an item. */
  const sameServer = !runner.sender.topology && keys.parts().length === 1

  async function recordOnce<View>(
    recording: NamedOperation<View | undefined, keyof ViewCommands>,
    input: RepeatableView,
  ): Promise<View> {
    checkKey(input.idempotencyKey)
    try {
      const once = recordViewOnce(keys, input, { view: recording, sameServer })
      const { view, countedBy } = await run(once)
      if (view === undefined && (await undo(undoViewOnce(keys, input, countedBy)))) {
        throw stillCounted()
      }
      return requireSession(view)
    } catch (error) {
      throw repeatable(error)
    }
  }

  async function undo<Result>(operation: Operation<Result>): Promise<Result> {
    try {
      return await run(operation)
    } catch (cause) {
      const message =
        'the session has ended, and undoing its view failed: the item may still be counted'
      throw new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { cause })
    }
  }

  return {
    /**
     * The 25 most recently viewed items of this session, newest first.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async viewedItems(token: string): Promise<ViewedItem[]> {
      return requireSession(await run(viewedItems(keys, tokens.verify(token))))
    },

    /** The most viewed items, at most `limit` (1 to 1,000, default 10), most viewed first. One round trip. */
    async popularItems(limit = 10): Promise<PopularItem[]> {
      checkLimit(limit)
      return await run(popularItems(keys, limit))
    },

    /**
     * Records that the session viewed the item, and refreshes the session. One round trip, which also reads the
     * session's data with `{ data: true }`.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION` if the session has ended; the view was undone in a second
     *   round trip (if the janitor halved the counts in between, the item's count is one view too low).
     *   `ONETRIP_OUTCOME_UNKNOWN` with the error as its cause if the undo failed: the item may still be
     *   counted, and the rest stays until a sweep with `sweepKeys`. With an idempotency key, the first error has
     *   `mayHaveWritten` if a view of an earlier call with this key may still be counted.
     */
    async recordView<Asked extends ViewOptions>(
      token: string,
      item: string,
      options?: Asked,
    ): Promise<MaybeData<RecordedView, Asked, Fields>> {
      const id = tokens.verify(token)
      checkName('item', item)
      const recording = recordView(keys, { id, item }, now())
      const operation: NamedOperation<
        MaybeData<RecordedView, Asked, Fields> | undefined,
        keyof ViewCommands
      > = withDataIf(options, recording, keys, id)
      const idempotencyKey = options?.idempotencyKey
      if (idempotencyKey !== undefined)
        return await recordOnce(operation, { id, item, idempotencyKey })
      const view = await run(operation)
      if (view === undefined) await undo(undoView(keys, { id, item }))
      return requireSession(view)
    },
  }
}

const stillCounted = () =>
  new StoreError(
    'ONETRIP_UNKNOWN_SESSION',
    'the session does not exist or has ended; a view of an earlier call with this idempotency key may still be counted',
    { mayHaveWritten: true },
  )
