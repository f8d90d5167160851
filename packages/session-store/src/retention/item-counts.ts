import type { Keys } from '../keys.ts'
import { type Command, memberScores, type Update } from '../updates.ts'

/** The least viewed items of one part of the item counts, least viewed first. */
interface LeastViewed {
  readonly key: string
  /** All items of the part. */
  readonly size: number
  readonly views: readonly number[]
}

/** The views of the `limit` least viewed items of each part. Keys: item counts. */
export function leastViewed(keys: Keys, limit: number): Update<LeastViewed[]> {
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

/** How many items of one part of the item counts stay; the least viewed of the others go. */
interface Drop {
  readonly key: string
  readonly keep: number
}

/**
 * Which items are to go so that `keptItems` stay: the least viewed of all parts first. An item is
 * passed over while a part may hold a less viewed one that was not read.
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
 * Drops the least viewed items beyond those that stay, as they are when the command is executed. Reads
 * how many went. Keys: item counts.
 */
export function dropItems(drops: readonly Drop[]): Update<number> {
  return {
    commands: drops.map(({ key, keep }): Command => ['ZREMRANGEBYRANK', key, keep, -1]),
    readOnly: false,
    read: (replies) => replies.reduce<number>((sum, removed) => sum + Number(removed), 0),
  }
}

/**
 * KEYS: a part of the item counts. ARGV: the items. Replies how many were halved and stay, and how many
 * vanished. A score is minus the number of views. It only makes less of what there is, so it runs in
 * a full memory too.
 */
const HALVE = `#!lua flags=allow-oom
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
 * Halves the counts of these items, rounding down; who falls to 0 vanishes. One step of the server: a
 * view comes before it and is halved with the others, or after it and counts in full. A view that is
 * taken back (`undoView`) after its count was halved takes 1 where 1/2 was left: the item is counted
 * at most one view too low, and vanishes rather than stay with none.
 *
 * Keys: the part of the item counts.
 */
export function halveCounts(
  key: string,
  items: readonly string[],
): Update<{ halved: number; gone: number }> {
  return {
    commands: [['EVAL', HALVE, 1, key, ...items]],
    readOnly: false,
    read([reply]) {
      const [halved, gone] = reply as readonly [number, number]
      return { halved, gone }
    },
  }
}
