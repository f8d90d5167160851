import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseDrops } from '../src/retention/item-counts.ts'
import { chooseEvictions } from '../src/retention/retention.ts'

/** Parts of a store, and how many of the first entries of each were read. */
const parts = fc.array(
  fc.record({ all: fc.array(fc.nat(50), { maxLength: 12 }), read: fc.integer({ min: 1, max: 5 }) }),
  { minLength: 1, maxLength: 5 },
)
const limits = fc.record({
  max: fc.nat(40),
  batchSize: fc.integer({ min: 1, max: 20 }),
  idleBefore: fc.nat(50),
})

const ascending = (numbers: number[]) => numbers.toSorted((a, b) => a - b)

test('chooses the oldest sessions of all parts, and no more than the limits require', () => {
  fc.assert(
    fc.property(parts, limits, (parts, { max, batchSize, idleBefore }) => {
      const chosen = chooseEvictions(
        parts.map(({ all, read }, index) => ({
          part: { login: `login ${index}`, recent: `recent ${index}` },
          size: all.length,
          oldest: ascending(all)
            .slice(0, read)
            .map((lastSeen, rank) => ({ id: `${index}/${rank}`, lastSeen })),
        })),
        { maxSessions: max, idleBefore, batchSize },
      )
      const times = ascending(chosen.flatMap(({ sessions }) => sessions.map((one) => one.lastSeen)))
      const everybody = ascending(parts.flatMap(({ all }) => all))
      const due = everybody.filter(
        (lastSeen, rank) => rank < everybody.length - max || lastSeen < idleBefore,
      )
      expect(times).toEqual(due.slice(0, times.length))
      expect(times.length).toBeLessThanOrEqual(batchSize)
      // There must be progress, otherwise a run would end too early.
      if (due.length > 0) expect(times.length).toBeGreaterThan(0)
    }),
  )
})

test('drops the least viewed items of all parts, and keeps the maximum', () => {
  fc.assert(
    fc.property(parts, limits, (parts, { max, batchSize }) => {
      const read = parts.map(({ all, read }, index) => ({
        key: String(index),
        size: all.length,
        views: ascending(all).slice(0, read),
      }))
      const drops = chooseDrops(read, { keptItems: max, batchSize })
      const dropped = drops.flatMap(({ key, keep }) => {
        const all = ascending(parts[Number(key)]?.all ?? [])
        return all.slice(0, all.length - keep)
      })
      const everything = ascending(parts.flatMap(({ all }) => all))
      const surplus = Math.max(0, everything.length - max)
      expect(ascending(dropped)).toEqual(everything.slice(0, dropped.length))
      expect(dropped.length).toBeLessThanOrEqual(Math.min(surplus, batchSize))
      if (surplus > 0) expect(dropped.length).toBeGreaterThan(0)
    }),
  )
})
