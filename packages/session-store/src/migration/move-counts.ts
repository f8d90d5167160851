import type { Keys } from '../core/keys.ts'
import { type Command, memberScores, type Operation, type Reply } from '../core/operation.ts'
import { batches, walk } from '../core/sessions/walk.ts'
import { migrationKeys } from './keys.ts'
import type { MigrationSides } from './state.ts'

/** The counts of items at one reading of the source. */
interface Reading {
  /** The number of the reading. A reading with a higher number is never older. */
  readonly number: number
  readonly counts: readonly (readonly [item: string, views: number])[]
}

/** Field of `janitorTasks` of the source: the number of the last reading. */
const READINGS = 'migration:readings'

const nextReading = (keys: Keys): Command => ['HINCRBY', keys.janitorTasks(), READINGS, 1]

/** A score is the negative number of views. While a view is being undone, it may be above 0 for a moment. */
const viewsOf = (score: number): number => Math.max(0, -score)

/** One step of a walk over the source's counts. Keys: janitorTasks, item counts. */
function readCounts(
  keys: Keys,
  key: string,
  { cursor, count }: { cursor: string; count: number },
): Operation<Reading & { cursor: string }> {
  return {
    commands: [nextReading(keys), ['ZSCAN', key, cursor, 'COUNT', count]],
    readOnly: false,
    read([number, step]) {
      const [next, pairs] = step as readonly [string, Reply]
      const counts = memberScores(pairs).map(([item, score]) => [item, viewsOf(score)] as const)
      return { number: Number(number), cursor: String(next), counts }
    },
  }
}

/** Those of the items that are no longer in the source, with 0 views. Keys: janitorTasks, item counts. */
function readVanished(keys: Keys, items: readonly string[]): Operation<Reading> {
  return {
    commands: [
      nextReading(keys),
      ...items.map((item): Command => ['ZSCORE', keys.popular(item), item]),
    ],
    readOnly: false,
    read: ([number, ...scores]) => ({
      number: Number(number),
      counts: items.filter((_, index) => scores[index] === null).map((item) => [item, 0] as const),
    }),
  }
}

/**
 * KEYS: a part of the item counts, its ledger. ARGV: the number of the reading, then each item and its views.
 * The ledger maps an item to the number of the last reading and the views already copied from the source. Returns
 * the number of views by which the counts have changed.
 */
const COUNT_IN = `
if redis.call('HEXISTS', KEYS[2], '') == 1 then
  return redis.error_reply('FINISHED the migration is finished')
end
local number, changed = tonumber(ARGV[1]), 0
for i = 2, #ARGV, 2 do
  local item, views = ARGV[i], tonumber(ARGV[i + 1])
  local entry = redis.call('HGET', KEYS[2], item)
  local last, counted = string.match(entry or '0:0', '(%d+):(%d+)')
  if number > tonumber(last) then
    local more = views - tonumber(counted)
    if more ~= 0 then
      local score = redis.call('ZINCRBY', KEYS[1], string.format('%.0f', -more), item)
      if tonumber(score) >= 0 then redis.call('ZREM', KEYS[1], item) end
      changed = changed + math.abs(more)
    end
    redis.call('HSET', KEYS[2], item, string.format('%.0f:%.0f', number, views))
  end
end
return changed`

/**
 * Adds to the target's counts what the source has counted since the last reading in the ledger, and updates the
 * ledger atomically. So a retry adds nothing, and an older reading that arrives late is ignored. Returns the
 * number of views by which the counts have changed.
 *
 * Keys of each part: item counts, ledger.
 *
 * @throws StoreError `ONETRIP_REFUSED` if the migration is finished.
 */
function countIn(keys: Keys, { number, counts }: Reading): Operation<number> {
  const { ledger } = migrationKeys(keys)
  const groups = [...Map.groupBy(counts, ([item]) => keys.popular(item)).values()]
  return {
    commands: groups.map((members): Command => {
      const [[first] = ['']] = members
      return ['EVAL', COUNT_IN, 2, keys.popular(first), ledger(first), number, ...members.flat()]
    }),
    readOnly: false,
    read: (replies) => replies.reduce<number>((sum, changed) => sum + Number(changed), 0),
  }
}

/** The result of one step of `moveCounts`. */
interface CountsStep {
  /** The number of items compared. */
  readonly items: number
  /** The number of views by which the target's counts have changed. */
  readonly views: number
}

/**
 * Copies the source's counts to the target, in steps of a few round trips. The source continues counting; the next
 * call copies what was counted meanwhile.
 */
export async function* moveCounts(
  { from, to }: MigrationSides,
  batchSize: number,
): AsyncGenerator<CountsStep> {
  async function add({ number, counts }: Reading): Promise<CountsStep> {
    let views = 0
    // Redis returns a small sorted set completely, regardless of COUNT.
    for (const some of batches(counts, batchSize)) {
      views += await to.store.run(countIn(to.keys, { number, counts: some }))
    }
    return { items: counts.length, views }
  }

  for (const key of from.keys.allPopular()) {
    let cursor = '0'
    do {
      const step = await from.store.run(readCounts(from.keys, key, { cursor, count: batchSize }))
      cursor = step.cursor
      yield await add(step)
    } while (cursor !== '0')
  }
  // Items that are in the ledger but no longer in the source: their last view was undone.
  for (const key of migrationKeys(to.keys).allLedgers()) {
    for await (const entries of walk(to.store, 'HSCAN', key, { count: batchSize })) {
      const counted = entries.map(([item]) => item)
      for (const items of batches(counted, batchSize)) {
        const { items: _, ...done } = await add(
          await from.store.run(readVanished(from.keys, items)),
        )
        yield { items: 0, ...done }
      }
    }
  }
}
