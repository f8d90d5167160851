import type { Operation } from '../command.ts'
import { batches, walk } from '../redis/walk.ts'
import type { RetentionContext, TaskStep } from './context.ts'

/** Drops items beyond the `keep` most viewed, at most `limit`. Returns their number. Keys: item counts. */
const dropItems = (key: string, keep: number, limit: number): Operation<number> => ({
  commands: [['ZREMRANGEBYRANK', key, keep, keep + limit - 1]],
  readOnly: false,
  read: ([dropped]) => Number(dropped),
})

/**
 * KEYS: a part of the item counts. ARGV: the items. Returns the number of halved and of removed items. A score is
 * the negative number of views. `allow-oom`: the script adds no data, so it may run when memory is full.
 */
const HALVE = `#!lua flags=allow-oom
-- halve counts
local halved, gone = 0, 0
for _, item in ipairs(ARGV) do
  local views = -(tonumber(redis.call('ZSCORE', KEYS[1], item)) or 0)
  if views >= 2 then
    redis.call('ZADD', KEYS[1], string.format('%.0f', -math.floor(views / 2)), item)
    halved = halved + 1
  else
    gone = gone + redis.call('ZREM', KEYS[1], item)
  end
end
return { halved, gone }`

/**
 * Halves the counts of these items, rounding down, and removes items with 0. It is atomic: a view comes before it
 * and is halved, or after it and counts in full. If a view is undone (`undoView`) after its count was halved, the
 * item's count is at most one view too low.
 *
 * Keys: the part of the item counts.
 */
export const halveCounts = (key: string, items: readonly string[]): Operation<TaskStep> => ({
  commands: [['EVAL', HALVE, 1, key, ...items]],
  readOnly: false,
  read([reply]) {
    const [itemsHalved, itemsDropped] = reply as readonly [number, number]
    return { itemsHalved, itemsDropped }
  },
})

/** Drops the least viewed items of each part beyond its share, then halves the counts of all others, each once. */
export async function* rescale(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { runner, keys, keptItems, batchSize } = context
  const parts = keys.allPopular()
  const keep = Math.ceil(Math.min(keptItems, Number.MAX_SAFE_INTEGER / 2) / parts.length)
  for (const key of parts) {
    let itemsDropped: number
    do {
      itemsDropped = await runner.run(dropItems(key, keep, batchSize))
      yield { itemsDropped }
    } while (itemsDropped > 0)
    // Collects all names first: ZSCAN may return an item twice, or miss it, if its score changes during the walk.
    const items = new Set<string>()
    for await (const some of walk(runner, 'ZSCAN', key, batchSize)) {
      for (const [item] of some) items.add(item)
      yield {}
    }
    for (const some of batches([...items], batchSize))
      yield await runner.run(halveCounts(key, some))
  }
}
