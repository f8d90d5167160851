import { createHash } from 'node:crypto'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import type { Update } from '../updates.ts'

/** How long the repetition of a view is recognized. */
const REPEATABLE_SECONDS = 600

/** A view by a client that may send it again, under the same key. */
export interface RepeatableView {
  id: string
  item: string
  /** Any text: Redis sees a hash of it. */
  idempotencyKey: string
}

/**
 * KEYS: item counts, the mark of this view. ARGV: item, seconds. Replies the count, and whether this
 * call is the one that counted. A repetition gets the count of the first.
 */
const COUNT_ONCE = `
local count = redis.call('GET', KEYS[2])
if count then return { count, 0 } end
count = redis.call('ZINCRBY', KEYS[1], -1, ARGV[1])
redis.call('SET', KEYS[2], count, 'EX', ARGV[2])
return { count, 1 }`

/** KEYS: item counts, the mark of this view. ARGV: item. Takes back a view that is counted. */
const UNCOUNT = `
if redis.call('DEL', KEYS[2]) == 0 then return end
redis.call('ZINCRBY', KEYS[1], 1, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, '+inf')`

const PLACE_OF_COUNT = 3

function markOf(keys: Keys, { id, item, idempotencyKey }: RepeatableView): string {
  const view = JSON.stringify([id, item, idempotencyKey])
  return keys.once(item, createHash('sha256').update(view).digest('base64url'))
}

/**
 * `recordView` with a script in place of ZINCRBY: however often it is sent with the same key, it counts
 * once within ten minutes. Reads whether it was this call that counted.
 *
 * Keys: those of the update, and the mark of this view, in the slot of the item's count.
 */
export function once<View>(
  keys: Keys,
  input: RepeatableView,
  view: Update<View>,
): Update<{ view: View; counted: boolean }> {
  const mark = markOf(keys, input)
  const count = ['EVAL', COUNT_ONCE, 2, keys.popular(input.item), mark, input.item] as const
  return {
    ...view,
    commands: view.commands.with(PLACE_OF_COUNT, [...count, REPEATABLE_SECONDS]),
    read(replies) {
      const [count = null, counted] = replies[PLACE_OF_COUNT] as readonly (string | number)[]
      return { view: view.read(replies.with(PLACE_OF_COUNT, count)), counted: counted === 1 }
    },
  }
}

/** `undoView` for it; the count is taken back once. Keys: as `once`. */
export function undoOnce(keys: Keys, view: RepeatableView, counted: boolean): Update<void> {
  const { id, item } = view
  const uncount = ['EVAL', UNCOUNT, 2, keys.popular(item), markOf(keys, view), item] as const
  return {
    commands: [['DEL', keys.viewed(id)], ...(counted ? [uncount] : [])],
    readOnly: false,
    read: () => undefined,
  }
}

interface Side {
  readonly store: { run: Runner['run'] }
  readonly keys: Keys
}

/**
 * Brings the mark of a view to another store, where the view may be repeated, unless that one has it. One round
 * trip, and one more if there is a mark. Keys: the mark, on both sides.
 */
export async function carryMark(from: Side, to: Side, view: RepeatableView): Promise<void> {
  const count = await from.store.run({
    commands: [['GET', markOf(from.keys, view)]],
    readOnly: true,
    read: ([reply]) => reply,
  })
  if (typeof count !== 'string') return
  await to.store.run({
    commands: [['SET', markOf(to.keys, view), count, 'EX', REPEATABLE_SECONDS, 'NX']],
    readOnly: false,
    read: () => undefined,
  })
}

/**
 * The error of an update that has the same effect however often it is sent: if the outcome is unknown, it is
 * `retrySafe`. Any other error is returned as it is.
 */
export function repeatable(error: unknown): unknown {
  if (!(error instanceof StoreError) || error.code !== 'ONETRIP_OUTCOME_UNKNOWN') return error
  const { code, message, mayHaveWritten, cause } = error
  return new StoreError(code, message, { mayHaveWritten, cause, retrySafe: true })
}
