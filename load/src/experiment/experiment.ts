import type { RedisBuild } from '@onetrip/stack/redis.ts'
import type { Command } from 'commander'
import type { RedisServer, RedisServerOptions } from '../drivers/redis/server.ts'
import type { Result } from './result.ts'
import type { Rows } from './rows.ts'
import type { Headline, Section } from './section.ts'
import type { Case, Facts, Measured, Shape } from './shape.ts'

/**
 * A measurement, declared: what there is to measure, how one case is measured once, what the figures mean.
 * All else is derived: the command and its help, the order of rounds, progress, interrupts, the file,
 * tables, charts, comparison. A module in `experiments/` exports one; `experiments.ts` lists it.
 */
export interface Experiment<Options extends object = object, Bench = unknown> extends Shape {
  /** As a heading. */
  readonly title: string
  /** What sets a result apart from usual ones, after the heading: `shape get-8000`; empty for nothing. */
  detail?(result: Result): string
  /** One line, without a full stop, for the list of commands. */
  readonly summary: string
  /** Below the options in `--help`: what it shows, how it measures, `Examples:`. */
  readonly about: string
  /** Its heading in `--help`. */
  readonly group: 'Over HTTP' | 'The store' | 'Redis'
  /** Adds its options. Every experiment has `--rounds` and `--duration` besides, with these defaults. */
  configure(command: Command): void
  /** Fills in options whose defaults depend on others. */
  complete?(options: Options & RoundOptions): Options & RoundOptions
  readonly rounds: number
  /** Seconds of one run; null where a run ends by itself. */
  readonly duration: number | null
  /** What `--quick` sets unless the user says otherwise: for less than a minute. */
  readonly quick: Partial<Options & RoundOptions>
  /** What `--full` sets. Default: there is no `--full`. */
  readonly full?: Partial<Options & RoundOptions>
  /** About how long it takes, in seconds; null where `all` leaves it out. */
  readonly seconds: Readonly<Record<Preset, number | null>>
  /** Runs it in a network namespace of its own, if possible. Returns the builds to make before. */
  isolated?(options: Options): readonly (RedisBuild | 'tools')[]

  /** What must hold in any case, as `--threshold` takes it. Default: nothing. */
  readonly thresholds?: readonly string[]
  /** Whether a run that is interrupted resolves with what it has by then, which counts. Default: no. */
  readonly endsEarly?: boolean

  /** The options that make two results incomparable when they differ. */
  readonly loadOptions: readonly string[]

  /** Starts or finds what must run first. What it started is stopped by `context.defer` or `startRedis`. */
  prepare(context: Context, options: Options & RoundOptions): Promise<Bench>
  cases(bench: Bench, options: Options & RoundOptions): Case[]
  /** The cases that are run once, unmeasured, before the first round. Default: none. */
  warmUp?(cases: readonly Case[], options: Options & RoundOptions): readonly Case[]
  /** Measures one case once. Round 0 is the warm-up. */
  measure(one: Case, bench: Bench, run: Run<Options & RoundOptions>): Promise<Measured>
  /** The metrics that the progress line shows of a finished run. */
  readonly progress: readonly string[]

  /** Tables and charts. The terminal prints the tables. */
  sections(rows: Rows, result: Result): readonly Section[]
  /** Sentences with the result, the most important first; what is no text is left out. */
  claims(rows: Rows, result: Result): readonly (string | false | 0 | null | undefined)[]
  /** The top of the report. Default: the first claim. */
  headline?(rows: Rows, result: Result): Headline | undefined
}

export type Preset = 'quick' | 'usual' | 'full'

export interface RoundOptions {
  rounds: number
  /** Seconds of one run; 0 for an experiment whose runs end by themselves. */
  duration: number
}

/** A run of a case. */
export interface Run<Options> {
  readonly round: number
  readonly options: Options
  readonly context: Context
  /** Shows how far a run of several parts has come. */
  note(text: string): void
}

/** What the runner gives to an experiment. */
export interface Context {
  /** Aborted by Ctrl-C, and when something that is measured has gone. */
  readonly signal: AbortSignal
  /** The result that `--compare` names, of the same experiment. */
  readonly comparedWith: Result | null
  /** Ends the measurement: what it is about has gone. */
  fail(reason: Error): void
  /** Runs `undo` at the end, whatever happens; the last one first. */
  defer(undo: () => unknown): void
  /** Starts a build of Redis, which is stopped at the end unless the experiment does so before. */
  startRedis(options: RedisServerOptions): Promise<RedisServer>
  /** Shows a line while work of the preparation goes on. */
  step<T>(text: string, work: () => Promise<T>): Promise<T>
  /** Prints facts and keeps them with the result; two results with another `load` are not compared. */
  describe(kind: 'load' | 'software', facts: Facts): void
}
