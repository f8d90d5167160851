import { createHash } from 'node:crypto'

/** Parameters of a Bloom filter. The bits themselves are in Redis. */
interface BloomFilter {
  readonly bits: number
  /** Bits that are set for each member. */
  readonly hashes: number
  /** The bits of a member; the same in every process and release. */
  positions(member: string): number[]
  /** Estimates the number of members from the number of bits that are set. */
  count(bitsSet: number): number
}

/**
 * Sizes a Bloom filter. A member is always found. A non-member is found with at most the false-positive rate,
 * while the filter has no more members than `capacity`; above it, the rate increases.
 *
 * @param capacity At least 1.
 * @param falsePositiveRate Above 0 and below 1. A tenth of the rate takes 4.8 more bits per member of the
 *   capacity, and 3.3 more hashes.
 * @throws TypeError for other values, and for more than 2^32 bits (a Redis string).
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
    // Enhanced double hashing derives all positions from two hashes (Dillinger and Manolios, 2004).
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
      const share = Math.min(bitsSet, bits - 1) / bits // with all bits set the estimate would be infinite
      return Math.round((bits / hashes) * -Math.log1p(-share))
    },
  }
}
