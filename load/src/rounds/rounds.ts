import { setTimeout } from 'node:timers/promises'
import { isLive, print, spinner } from '@onetrip/stack/terminal.ts'
import type { Sample } from './result.ts'
import type { Case } from './shape.ts'

export interface RoundsPlan {
  cases: readonly Case[]
  rounds: number
  /** The cases to run once before the first round. */
  warmUps: readonly Case[]
  label(one: Case): string
  /** Runs a case; round 0 is the warm-up. */
  measure(one: Case, round: number, note: (text: string) => void): Promise<Sample>
  describe(sample: Sample): string
  /** Aborted to end the measurement. */
  signal: AbortSignal
}

/**
 * Runs every case once per round. The order changes from round to round, so that slow drifts of the machine
 * affect all cases equally.
 *
 * @returns the samples of all complete rounds; `error` is what ended the rounds early, else null.
 * @throws the error that ended the first round.
 */
export async function runRounds(plan: RoundsPlan): Promise<{ samples: Sample[]; error: unknown }> {
  const { cases, rounds, signal } = plan
  const line = isLive() ? spinner('') : undefined // without a terminal: a line per run
  const samples: Sample[] = []
  let [startedAt, done] = [0, 0]
  const run = async (one: Case, round: number) => {
    signal.throwIfAborted()
    const when = round === 0 ? 'Warm-up' : `Round ${round}/${rounds}`
    const each = (performance.now() - startedAt) / done
    const left = done > 0 ? `  (${timeLeft(each * (rounds * cases.length - done))})` : ''
    const text = `${when.padEnd(`Round ${rounds}/${rounds}`.length)}  ${plan.label(one)}`
    line?.start(`${text}${left}`)
    const note = (more: string) => {
      if (line) line.text = `${text}  ${more}${left}`
      else print(`${text}  ${more}`)
    }
    const sample = await plan.measure(one, round, note)
    signal.throwIfAborted()
    if (!line) print(`${text}  ${plan.describe(sample)}`)
    return sample
  }
  try {
    for (const one of plan.warmUps) await run(one, 0)
    startedAt = performance.now()
    for (let round = 1; round <= rounds; round++) {
      const taken: Sample[] = []
      for (const one of orderOf(cases, round - 1)) {
        taken.push(await run(one, round))
        done += 1
      }
      samples.push(...taken)
      signal.throwIfAborted()
    }
    return { samples, error: null }
  } catch (thrown) {
    const error = await causeOf(thrown, signal)
    if (samples.length === 0) throw error
    return { samples, error }
  } finally {
    line?.stop()
    print()
  }
}

/** `40 s left`, `3 min left`. */
function timeLeft(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1_000)
  return seconds < 100 ? `${seconds} s left` : `${Math.round(seconds / 60)} min left`
}

/** Connections of a program that dies break a moment before its exit is noticed. */
const CAUSE_WITHIN_MS = 2_000

/** Returns the reason of `signal` if it is aborted within two seconds, else `error`. */
async function causeOf(error: unknown, signal: AbortSignal): Promise<unknown> {
  await setTimeout(CAUSE_WITHIN_MS, null, { signal }).catch(() => {})
  return signal.aborted ? signal.reason : error
}

/**
 * The order of the cases in a round. It is reversed in every second round and rotated by one every two rounds, so
 * that over the rounds each case comes early and late, and before and after every other case.
 *
 * @param round from 0.
 */
export function orderOf<T>(cases: readonly T[], round: number): T[] {
  const shift = Math.floor(round / 2) % cases.length
  const rotated = [...cases.slice(shift), ...cases.slice(0, shift)]
  return round % 2 === 0 ? rotated : rotated.reverse()
}
