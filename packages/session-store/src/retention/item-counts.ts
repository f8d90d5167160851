import { type Command, memberScores, type Operation } from '../command.ts'
import type { Keys } from '../keys.ts'

/** The least viewed items of one part of the item counts, least viewed first. */
interface LeastViewed {
  readonly key: string
  /** The number of items in the part. */
  readonly size: number
  readonly views: readonly number[]
}

/** The views of the `limit` least viewed items of each part. Keys: item counts. */
export function leastViewed(keys: Keys, limit: number): Operation<LeastViewed[]> {
  const parts = keys.allPopular()
  return {
    commands: parts.flatMap((key): Command[] => [
      ['ZCARD', key],
      ['ZREVRANGE', key, 0, limit - 1, 'WITHSCORES'],
    ]),
    readOnly: true,
    read: (replies) =>
      parts.map((key, index) => ({
        key,
        size: Number(replies[2 * index]),
        views: memberScores(replies[2 * index + 1]).map(([, score]) => -score),
      })),
  }
}

/** How many items of one part to keep. The least viewed items are dropped. */
interface Drop {
  readonly key: string
  readonly keep: number
}

/**
 * Chooses the items to drop so that `keptItems` stay: the least viewed of all parts first. Skips an item as long
 * as a part may have a less viewed item that was not read.
 */
export function chooseDrops(
  parts: readonly LeastViewed[],
  { keptItems, batchSize }: { keptItems: number; batchSize: number },
): Drop[] {
  const surplus = parts.reduce((sum, { size }) => sum + size, 0) - keptItems
  const readUpTo = Math.min(
    ...parts
      .filter(({ size, views }) => views.length < size)
      .map(({ views }) => views.at(-1) ?? Number.NEGATIVE_INFINITY),
  )
  const chosen = parts
    .flatMap((part) => part.views.map((views) => ({ part, views })))
    .filter(({ views }) => views <= readUpTo)
    .sort((a, b) => a.views - b.views)
    .slice(0, Math.max(0, Math.min(surplus, batchSize)))
  const byPart = Map.groupBy(chosen, ({ part }) => part)
  return [...byPart].map(([{ key, size }, dropped]) => ({ key, keep: size - dropped.length }))
}

/**
 * Drops the items that are least viewed when the command is executed. Returns the number of dropped items. Keys:
 * item counts.
 */
export function dropItems(drops: readonly Drop[]): Operation<number> {
  return {
    commands: drops.map(({ key, keep }): Command => ['ZREMRANGEBYRANK', key, keep, -1]),
    readOnly: false,
    read: (replies) => replies.reduce<number>((sum, removed) => sum + Number(removed), 0),
  }
}

/**
 * KEYS: a part of the item counts. ARGV: the items. Returns the number of halved and of removed items. A score is
 * the negative number of views. `allow-oom`: the script adds no data, so it may run when memory is full.
 */
const HALVE = `#!lua flags=allow-oom
-- halve counts
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ARGV))
local halved, gone = {}, {}
for i, item in ipairs(ARGV) do
  local views = -(tonumber(scores[i]) or 0)
  if views >= 2 then
    halved[#halved + 1] = string.format('%.0f', -math.floor(views / 2))
    halved[#halved + 1] = item
  elseif scores[i] then
    gone[#gone + 1] = item
  end
end
if #halved > 0 then redis.call('ZADD', KEYS[1], unpack(halved)) end
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)) end
return { #halved / 2, #gone }`

/**
 * Halves the counts of these items, rounding down, and removes items with 0. It is atomic: a view comes before it
 * and is halved, or after it and counts in full. If a view is undone (`undoView`) after its count was halved, the
 * item's count is at most one view too low.
 *
 * Keys: the part of the item counts.
 */
export function halveCounts(
  key: string,
  items: readonly string[],
): Operation<{ halved: number; gone: number }> {
  return {
    commands: [['EVAL', HALVE, 1, key, ...items]],
    readOnly: false,
    read([reply]) {
      const [halved, gone] = reply as readonly [number, number]
      return { halved, gone }
    },
  }
}
