import { partitionedKeys } from '@onetrip/session-store'
import calculateSlot from 'cluster-key-slot'

// The recommended minimum, and the number of slots of a cluster.
export const [MIN_PARTITIONS, MAX_PARTITIONS] = [64, 16_384]

/** The share of the sessions on the fullest node, if the nodes have equal ranges of slots. */
export function fullestShare(partitions: number, nodes: number): number {
  const counts = new Uint32Array(nodes)
  let most = 0
  for (const slot of slotsOf(partitions)) {
    const node = Math.floor((slot * nodes) / MAX_PARTITIONS)
    counts[node] = (counts[node] ?? 0) + 1
    most = Math.max(most, counts[node])
  }
  return most / partitions
}

const known = new Map<number, number[]>()

function slotsOf(partitions: number): number[] {
  const slots =
    known.get(partitions) ??
    partitionedKeys(partitions)
      .parts()
      .map(({ login }) => calculateSlot(login))
  known.set(partitions, slots)
  return slots
}

/** `count` rounded up to a power of two, from `MIN_PARTITIONS` to `MAX_PARTITIONS`. */
export const powerOfTwo = (count: number) =>
  Math.min(MAX_PARTITIONS, Math.max(MIN_PARTITIONS, 2 ** Math.ceil(Math.log2(Math.max(1, count)))))
