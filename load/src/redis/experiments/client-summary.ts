import { pairwiseRatios, type Summary, summarize } from '../../statistics.ts'
import type { Yardstick } from './client-diagnosis.ts'

export type ClientName =
  | 'benchmark'
  | 'raw'
  | 'ioredis'
  | 'store'
  | 'store-32'
  | 'benchmark-reconnect'
  | 'reconnect'
  | 'reconnect-ioredis'

/** One run of one client. */
export interface Run {
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  calls: number
  /** Connections opened per command; null where others' would be counted, too. */
  connections: number | null
  /** CPU time of Redis's main thread per command, in microseconds; null where it cannot be read. */
  mainMicros: number | null
  /** What ended the run early. */
  error: { message: string; outOfPorts: boolean } | null
}

/**
 * All runs of one client: medians with the range over the rounds; null where no run has the figure, as
 * when none got an answer.
 */
export interface Row {
  client: ClientName
  perSecond: Summary | null
  /** Of the reference, 0 to 1, round by round. */
  share: Summary | null
  p50: Summary | null
  p99: Summary | null
  connections: Summary | null
  mainMicros: Summary | null
  /** The errors that ended a run early, each once. */
  errors: string[]
  outOfPorts: boolean
}

/** @param reference the client that the others' shares refer to. */
export function summarizeRuns(
  clients: readonly ClientName[],
  reference: ClientName,
  runsOf: (client: ClientName) => readonly Run[],
): Row[] {
  const rates = (client: ClientName) => runsOf(client).map(({ perSecond }) => perSecond)
  return clients.map((client) => {
    const runs = runsOf(client)
    const over = (value: (run: Run) => number | null) => {
      const values = runs
        .filter(({ calls }) => calls > 0)
        .map(value)
        .filter((one) => one !== null)
      return values.length > 0 ? summarize(values) : null
    }
    const shares = pairwiseRatios(rates(client), rates(reference)).filter((share) => share > 0)
    const errors = runs.flatMap(({ error }) => error ?? [])
    return {
      client,
      perSecond: over((run) => run.perSecond),
      share: shares.length > 0 ? summarize(shares) : null,
      p50: over((run) => run.p50),
      p99: over((run) => run.p99),
      connections: over((run) => run.connections),
      mainMicros: over((run) => run.mainMicros),
      errors: [...new Set(errors.map(({ message }) => message))],
      outOfPorts: errors.some(({ outOfPorts }) => outOfPorts),
    }
  })
}

/** What a rate of the user's is read by; null when one of the clients that it takes did not work. */
export function yardstickOf(rows: readonly Row[], reference: ClientName): Yardstick | null {
  const row = (client: ClientName) => rows.find((one) => one.client === client)
  const measured = row(reference)?.perSecond?.median
  // By the shares, for each of them compares two runs of the same round.
  const rate = (client: ClientName) => {
    const share = row(client)?.share?.median
    return share === undefined || measured === undefined ? undefined : share * measured
  }
  const keeps = rate('ioredis')
  const [reconnects, reconnectsWithGreeting] = [rate('reconnect'), rate('reconnect-ioredis')]
  if (measured === undefined || keeps === undefined) return null
  if (reconnects === undefined || reconnectsWithGreeting === undefined) return null
  return { reference: measured, keeps, reconnects, reconnectsWithGreeting }
}
