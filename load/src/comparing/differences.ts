import type { Experiment } from '../experiment/experiment.ts'
import { figure, percent } from '../experiment/figures.ts'
import { ELSEWHERE, type Result } from '../experiment/result.ts'
import { type Row, Rows } from '../experiment/rows.ts'
import type { Facts } from '../experiment/shape.ts'
import { summarize } from '../experiment/statistics.ts'
import { DISTURBED } from '../measure/machine-cpu.ts'

/** In what two results differ besides their figures, each as `what: before, now after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and nothing is judged. */
  load: string[]
  /** In rates that were asked for, by more than a tenth: then nothing is judged at these. */
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

/** A case that two results have. */
export interface Pair {
  old: Row
  now: Row
}

/** The same case in two results, in the order of the newer one. */
export function pairsOf(before: Rows, after: Rows): Pair[] {
  return after.all.flatMap((now) => {
    const old = before.find(now.case)
    return old ? [{ old, now }] : []
  })
}

export function differencesOf(
  experiment: Experiment,
  [before, after]: readonly [Result, Result],
  pairs: readonly Pair[],
): Differences {
  const rows = new Rows(
    experiment,
    pairs.map(({ now }) => now),
  )
  return {
    load: [
      ...differ(loadFacts(experiment, before.options), loadFacts(experiment, after.options)),
      ...differ(...knownOfBoth(before.load, after.load)),
    ],
    rates: pairs.filter((pair) => !haveSameRate(pair)).map((pair) => rateText(pair, rows)),
    machine: differ(machineOf(before), machineOf(after)),
    disturbance: disturbanceOf(before, after),
    software: differ(softwareOf(before), softwareOf(after)),
    extent: differ(extentOf(before), extentOf(after)),
  }
}

/** What the options say of the load. */
export function loadFacts(experiment: Experiment, options: Result['options']): Facts {
  const text = (value: unknown) => (Array.isArray(value) ? value.join(' ') : String(value))
  return Object.fromEntries(
    experiment.loadOptions.map((name) => {
      const value = options[name]
      return [name, value === undefined || value === null ? null : text(value)]
    }),
  )
}

/** A stack that runs already does not tell everything. */
function knownOfBoth(before: Facts, after: Facts): [Facts, Facts] {
  const known = Object.keys(before).filter(
    (name) => before[name] !== null && (after[name] ?? null) !== null,
  )
  const only = (facts: Facts) =>
    Object.fromEntries(known.map((name) => [name, facts[name] ?? null]))
  return [only(before), only(after)]
}

/** As `what: before, now after`, of what is not the same in both. */
export function differ(before: Facts, after: Facts): string[] {
  const text = (value: Facts[string] | undefined) => String(value ?? 'none')
  return Object.keys({ ...before, ...after })
    .filter((name) => text(before[name]) !== text(after[name]))
    .map((name) => `${name}: ${text(before[name])}, now ${text(after[name])}`)
}

/** Rates that differ by a larger factor are another load. */
const SAME_RATE = 1.1

/** Whether what was asked for, where it is no factor, is nearly the same. */
export function haveSameRate(pair: Pair): boolean {
  return givenOf(pair).every(([old, now]) => {
    const factor = now / old
    return factor < SAME_RATE && 1 / factor < SAME_RATE
  })
}

function rateText(pair: Pair, rows: Rows): string {
  const [old = 0, now = 0] = givenOf(pair)[0] ?? []
  return `${rows.nameOf(pair.now)}: ${figure(old)}, now ${figure(now)}`
}

function givenOf({ old, now }: Pair): (readonly [old: number, now: number])[] {
  return now.shape.metrics
    .filter(({ kind }) => kind === 'given')
    .flatMap(({ name }) => {
      const values = [old.median(name), now.median(name)] as const
      return values[0] === null || values[1] === null ? [] : [[values[0], values[1]] as const]
    })
}

const machineOf = ({ machine }: Result): Facts => ({
  processor: machine.cpu,
  cores: machine.cores,
})

const softwareOf = ({ software, machine, git }: Result): Facts => ({
  ...software,
  Node: machine.node,
  kernel: machine.kernel,
  commit: git && `${git.commit.slice(0, 12)}${git.dirty ? ' with changes' : ''}`,
})

const extentOf = ({ samples, options }: Result): Facts => ({
  rounds: new Set(samples.map(({ round }) => round)).size,
  'seconds per run': typeof options.duration === 'number' ? options.duration : null,
})

/**
 * Beside busy programs a request costs more CPU time (caches, the other half of the core), and the cheap
 * variants lose more than the dear ones: a calm run and a disturbed one differ although nothing changed.
 */
function disturbanceOf(before: Result, after: Result): string[] {
  const [old, now] = [before, after].map(({ samples, elsewhere }) => {
    const shares = samples.flatMap(({ values }) => values[ELSEWHERE] ?? [])
    return shares.length > 0 ? summarize(shares).median : (elsewhere ?? 0)
  })
  if (old === undefined || now === undefined || Math.abs(now - old) < DISTURBED) return []
  return [`CPU time that went elsewhere: ${percent(old)}, now ${percent(now)}`]
}
