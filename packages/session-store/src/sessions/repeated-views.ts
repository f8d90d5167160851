import { createHash } from 'node:crypto'
import { StoreError, type StoreErrorCode } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../runner.ts'
import type { Update } from '../updates.ts'

/** How long an idempotency key is valid. */
const KEY_LIFETIME_SECONDS = 600

/** A view with an idempotency key. */
export interface RepeatableView {
  id: string
  item: string
  /** Any text. Redis gets only a hash of it. */
  idempotencyKey: string
}

/**
 * KEYS: item counts, the marker of this view. ARGV: item, seconds. Returns the count, and whether this call
 * counted the view. A retry gets the count of the first call.
 */
const COUNT_ONCE = `
local count = redis.call('GET', KEYS[2])
if count then return { count, 0 } end
count = redis.call('ZINCRBY', KEYS[1], -1, ARGV[1])
redis.call('SET', KEYS[2], count, 'EX', ARGV[2])
return { count, 1 }`

/** KEYS: item counts, the marker of this view. ARGV: item. Undoes the count of the view, once. */
const UNCOUNT = `
if redis.call('DEL', KEYS[2]) == 0 then return end
redis.call('ZINCRBY', KEYS[1], 1, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, '+inf')`

/** The position of ZINCRBY in the commands of `recordView`. */
const PLACE_OF_COUNT = 3

/** The Redis key that marks a view as counted. */
function markerOf(keys: Keys, { id, item, idempotencyKey }: RepeatableView): string {
  const view = JSON.stringify([id, item, idempotencyKey])
  return keys.once(item, createHash('sha256').update(view).digest('base64url'))
}

/**
 * `recordView` with a script instead of ZINCRBY: for ten minutes, all calls with the same key count once.
 * Returns whether this call counted.
 *
 * Keys: those of the update, and the marker of this view, in the slot of the item's count.
 */
export function recordViewOnce<View>(
  keys: Keys,
  input: RepeatableView,
  view: Update<View>,
): Update<{ view: View; counted: boolean }> {
  const marker = markerOf(keys, input)
  const count = ['EVAL', COUNT_ONCE, 2, keys.popular(input.item), marker, input.item] as const
  return {
    ...view,
    commands: view.commands.with(PLACE_OF_COUNT, [...count, KEY_LIFETIME_SECONDS]),
    read(replies) {
      const [count = null, counted] = replies[PLACE_OF_COUNT] as readonly (string | number)[]
      return { view: view.read(replies.with(PLACE_OF_COUNT, count)), counted: counted === 1 }
    },
  }
}

/** Undoes `recordViewOnce`; decrements the count only once. Keys: viewed, item counts, the marker. */
export function undoViewOnce(keys: Keys, view: RepeatableView, counted: boolean): Update<void> {
  const { id, item } = view
  const uncount = ['EVAL', UNCOUNT, 2, keys.popular(item), markerOf(keys, view), item] as const
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
 * Copies the marker of a view to another store, unless that store has it, so that a retry there counts nothing
 * twice. One round trip, and one more if there is a marker. Keys: the marker, on both sides.
 */
export async function copyMarker(from: Side, to: Side, view: RepeatableView): Promise<void> {
  const count = await from.store.run({
    commands: [['GET', markerOf(from.keys, view)]],
    readOnly: true,
    read: ([reply]) => reply,
  })
  if (typeof count !== 'string') return
  await to.store.run({
    commands: [['SET', markerOf(to.keys, view), count, 'EX', KEY_LIFETIME_SECONDS, 'NX']],
    readOnly: false,
    read: () => undefined,
  })
}

/**
 * Converts the error of an idempotent update: if its outcome is unknown, or Redis refused one of its commands, a
 * retry is safe. Returns any other error unchanged.
 */
export function repeatable(error: unknown): unknown {
  if (!(error instanceof StoreError) || !SENT.includes(error.code)) return error
  const { code, message, mayHaveWritten, cause } = error
  return new StoreError(code, message, { mayHaveWritten, cause, retrySafe: true })
}

const SENT: readonly StoreErrorCode[] = ['ONETRIP_OUTCOME_UNKNOWN', 'ONETRIP_REFUSED']
