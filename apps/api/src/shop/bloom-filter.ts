import { createHash } from 'node:crypto'

/** Where a Bloom filter keeps its members: `hashes` of `bits` bits are set for each. */
export interface BloomFilter {
  readonly bits: number
  readonly hashes: number
  /** The bits of a member; the same in every process and release. */
  positions(member: string): number[]
  /** About how many members there are, if so many bits are set. */
  count(bitsSet: number): number
}

/**
 * A filter that says "seen" of a new member with the false-positive rate at most, while it has no more members
 * than `capacity`. Beyond that, the rate grows. It never says "new" of a member that it has.
 *
 * @param capacity At least 1.
 * @param falsePositiveRate Above 0 and below 1. A tenth of it costs 4.8 more bits for each member of the capacity,
 *   and 3.3 more hashes.
 * @throws TypeError for anything else, and beyond the 2^32 bits of a string of Redis.
 */
export function bloomFilter(options: { capacity: number; falsePositiveRate: number }): BloomFilter {
  const { capacity, falsePositiveRate } = options
  // https://en.wikipedia.org/wiki/Bloom_filter#Optimal_number_of_hash_functions
  const bits = Math.ceil((capacity * -Math.log(falsePositiveRate)) / Math.LN2 ** 2)
  const inRange = capacity >= 1 && falsePositiveRate > 0 && falsePositiveRate < 1
  if (!inRange || bits > 2 ** 32) {
    throw new TypeError(
      'a Bloom filter needs a capacity of 1 or more, a falsePositiveRate between 0 and 1, and at most 2^32 bits',
    )
  }
  const hashes = Math.max(1, Math.round((bits / capacity) * Math.LN2))
  return {
    bits,
    hashes,
    // Enhanced double hashing: two hashes make all of them (Dillinger and Manolios, 2004).
    positions(member) {
      const digest = createHash('sha256').update(member).digest()
      let position = digest.readUIntBE(0, 6) % bits
      let step = digest.readUIntBE(6, 6) % bits
      return Array.from({ length: hashes }, (_, index) => {
        const found = position
        position = (position + step) % bits
        step = (step + index + 1) % bits
        return found
      })
    },
    count(bitsSet) {
      const share = Math.min(bitsSet, bits - 1) / bits // all bits set: any number
      return Math.round((bits / hashes) * -Math.log1p(-share))
    },
  }
}
