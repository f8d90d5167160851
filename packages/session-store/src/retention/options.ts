import { checkedOptions, type Kind } from '../input.ts'

export interface JanitorOptions {
  /** Maximum number of sessions. The least recently seen end first. Default 10,000,000. */
  maxSessions?: number
  /**
   * Pause between two runs, at most a day. Until the next run, a view can still refresh an idle session. Default
   * 60.
   */
  intervalSeconds?: number
  /** Maximum number of entries that one command removes or changes, 1 to 1,000. Default 100. */
  batchSize?: number
  /**
   * How many items, the most viewed, a rescaling keeps. Default 20,000, as in Redis in Action: far more than
   * `popularItems` returns, so that new items can rise.
   */
  keptItems?: number
  /**
   * How often item counts are halved, so that old views count less. All processes share the period, which starts
   * with the first run ever. `Infinity`: never. Default one day.
   */
  rescaleEverySeconds?: number
  /** How often leftovers are swept, over all processes. `Infinity`: never. Default one day. */
  sweepEverySeconds?: number
  /**
   * Whether a sweep also looks at all keys of the database (SCAN) for leftover views, data and users' lists. Set it
   * only if no other program uses names like those of the store. Default: true for a store with a `prefix`, else false.
   */
  sweepKeys?: boolean
  /**
   * How far the clock of this process may differ from that of Redis. Beyond it a run changes nothing and fails: a
   * clock that is days ahead would end all sessions. At least 1. `Infinity`: the clocks are not compared. Default
   * 60.
   */
  maxClockSkewSeconds?: number
}

const kinds: Record<keyof JanitorOptions, Kind> = {
  maxSessions: { min: 0, integer: true },
  intervalSeconds: { min: 0.001, max: 86_400 },
  batchSize: { min: 1, max: 1_000, integer: true },
  keptItems: { min: 0, integer: true },
  rescaleEverySeconds: { min: 0 },
  sweepEverySeconds: { min: 0 },
  maxClockSkewSeconds: { min: 1 },
  sweepKeys: 'boolean',
}

/** The defaults of all options of a janitor, except the one that the store gives. */
export const janitorDefaults = {
  maxSessions: 10_000_000,
  intervalSeconds: 60,
  batchSize: 100,
  keptItems: 20_000,
  rescaleEverySeconds: 86_400,
  sweepEverySeconds: 86_400,
  maxClockSkewSeconds: 60,
}

/**
 * Returns the options with their defaults.
 *
 * @throws TypeError if an option does not exist, has a wrong type or is out of range.
 */
export const checkedJanitorOptions = (options: JanitorOptions, store: { sweepKeys: boolean }) =>
  checkedOptions('a janitor', options, { ...janitorDefaults, ...store }, kinds)

/**
 * Returns the options of the janitor that a store runs; undefined if it runs none.
 *
 * @param janitor The option `janitor` of the store.
 * @throws TypeError for any other string, and for `false` with an idle timeout.
 */
export function ownJanitor(
  janitor: JanitorOptions | 'elsewhere' | false = {},
  { idleSeconds }: { idleSeconds: number },
): JanitorOptions | undefined {
  if (janitor === 'elsewhere') return undefined
  if (typeof janitor === 'string') {
    throw new TypeError(`janitor must be an object, 'elsewhere' or false, not '${janitor}'`)
  }
  if (janitor !== false) return janitor
  if (idleSeconds === Number.POSITIVE_INFINITY) return undefined
  throw new TypeError(
    "the option janitor: false needs idleSeconds: Infinity, because a view refreshes an idle session until a janitor ends it; if another process runs the janitor of this data, set janitor: 'elsewhere'",
  )
}
