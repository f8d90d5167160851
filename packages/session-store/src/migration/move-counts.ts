import { type Keys, migrationKeys } from '../keys.ts'
import { batches } from '../retention/retention-tasks.ts'
import { type Command, memberScores, type Reply, type Update } from '../updates.ts'
import type { MigrationSides } from './state.ts'

/** Counts of the source, as one reading found them. */
interface Reading {
  /** Grows with each reading: of two, the one with the higher number does not show an older state. */
  readonly number: number
  readonly counts: readonly (readonly [item: string, views: number])[]
}

/** Field of `janitorTasks` of the source: the number of the last reading. */
const READINGS = 'migration:readings'

const nextReading = (keys: Keys): Command => ['HINCRBY', keys.janitorTasks(), READINGS, 1]

/** A score is minus the number of views; a view that is being undone may leave it above 0 for a moment. */
const viewsOf = (score: number): number => Math.max(0, -score)

/** One step of a walk over the source's counts. Keys: janitorTasks, item counts. */
function readCounts(
  keys: Keys,
  key: string,
  { cursor, count }: { cursor: string; count: number },
): Update<Reading & { cursor: string }> {
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

/** The counts of those of the items that the source does not have any more. Keys: janitorTasks, item counts. */
function readVanished(keys: Keys, items: readonly string[]): Update<Reading> {
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
 * KEYS: a part of the item counts, its ledger. ARGV: the number of the reading, then item and views of each.
 * The ledger has, of each item, the number of the last reading and the views of the source that are counted in.
 * Replies by how many views the counts have changed.
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
 * Counts in what the source has counted since the ledger was written: the target's counts grow by the
 * difference, in the same step as the ledger. So a repetition adds nothing, and an older reading that comes
 * late is ignored. Reads by how many views the counts have changed.
 *
 * Keys of each part: item counts, ledger.
 *
 * @throws StoreError `ONETRIP_REFUSED` when the migration is finished.
 */
function countIn(keys: Keys, { number, counts }: Reading): Update<number> {
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

/** One step of a walk over a part of the ledger. Keys: ledger. */
const ledgerItems = (
  key: string,
  { cursor, count }: { cursor: string; count: number },
): Update<{ cursor: string; items: string[] }> => ({
  commands: [['HSCAN', key, cursor, 'COUNT', count]],
  readOnly: true,
  read([reply]) {
    const [next, pairs] = reply as readonly [string, readonly string[]]
    return { cursor: String(next), items: pairs.filter((_, index) => index % 2 === 0) }
  },
})

/** What one step of `moveCounts` did. */
export interface CountsStep {
  /** Items that were looked at. */
  readonly items: number
  /** By how many views the target's counts have changed. */
  readonly views: number
}

/**
 * Brings the target's counts up to those of the source, in steps of a few round trips. The source goes on
 * counting; the next call brings over what came meanwhile.
 */
export async function* moveCounts(
  { from, to }: MigrationSides,
  batchSize: number,
): AsyncGenerator<CountsStep> {
  async function add({ number, counts }: Reading): Promise<CountsStep> {
    let views = 0
    // A small sorted set comes whole, however many are asked for.
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
  // Items whose last view was undone.
  for (const key of migrationKeys(to.keys).allLedgers()) {
    let cursor = '0'
    do {
      const step = await to.store.run(ledgerItems(key, { cursor, count: batchSize }))
      cursor = step.cursor
      for (const items of batches(step.items, batchSize)) {
        const { items: _, ...done } = await add(
          await from.store.run(readVanished(from.keys, items)),
        )
        yield { items: 0, ...done }
      }
    } while (cursor !== '0')
  }
}
