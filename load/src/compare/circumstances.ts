import { DISTURBED } from '../measure/machine-cpu.ts'
import { percent } from '../table.ts'
import type { Comparable, Facts, Row } from './comparable.ts'

/** In what two results differ besides their figures, each as `what: before, after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and nothing is judged. */
  load: string[]
  /** In rates by more than a tenth: then nothing is judged at these. */
  rates: string[]
  /** In the machine: then CPU times are not judged. */
  machine: string[]
  /** In what other programs took of it: then rates, latencies and CPU times are not judged. */
  disturbance: string[]
  /** In software and code, which may be why something changed. */
  software: string[]
  /** In how much was measured. */
  extent: string[]
}

export function differencesOf(before: Comparable, after: Comparable): Differences {
  const pairs = commonRows(before.rows, after.rows)
  const common = new Set(pairs.map(({ row }) => row.variant))
  const clients = (of: Comparable) =>
    Object.fromEntries([...common].map((name) => [`client of ${name}`, of.clients[name]]))
  return {
    load: differ(before.load, after.load),
    rates: [
      ...new Set(
        pairs
          .filter((pair) => !haveSameRate(pair))
          .map(({ row, old }) => `${old.where}, now ${row.where}`),
      ),
    ],
    machine: differ(before.machine, after.machine),
    disturbance: disturbanceOf(before, after),
    software: differ(
      { ...before.software, ...clients(before) },
      { ...after.software, ...clients(after) },
    ),
    extent: differ(before.extent, after.extent),
  }
}

/**
 * Beside busy programs a request costs more CPU time (caches, the other half of the core), and the cheap
 * variants lose more than the dear ones: a calm run and a disturbed one differ although nothing changed.
 */
function disturbanceOf(before: Comparable, after: Comparable): string[] {
  const [old, now] = [before.elsewhere.median, after.elsewhere.median]
  if (Math.abs(now - old) < DISTURBED) return []
  return [`CPU time that went elsewhere: ${percent(old)}, now ${percent(now)}`]
}

/** The same row of two results. */
export interface Pair {
  /** Of the newer result. */
  row: Row
  old: Row
}

/** Rates that differ by a larger factor are another load. */
const SAME_RATE = 1.1

export function haveSameRate({ row, old }: Pair): boolean {
  if (row.rate === null || old.rate === null) return true
  const factor = row.rate / old.rate
  return factor < SAME_RATE && 1 / factor < SAME_RATE
}

/** The rows that both have, in the order of the newer one. */
export function commonRows(before: readonly Row[], after: readonly Row[]): Pair[] {
  return after.flatMap((row) => {
    const old = before.find(({ at, variant }) => at === row.at && variant === row.variant)
    return old ? [{ row, old }] : []
  })
}

export function differ(before: Facts, after: Facts): string[] {
  return Object.keys({ ...before, ...after })
    .filter((name) => text(before[name]) !== text(after[name]))
    .map((name) => `${name}: ${text(before[name])}, now ${text(after[name])}`)
}

const text = (value: unknown) => (value === null || value === undefined ? 'unknown' : String(value))
