import type { RedisBuild } from '@onetrip/stack/start-redis.ts'
import type { Command } from 'commander'
import type { RedisServer, RedisServerOptions } from '../drivers/redis/server.ts'
import type { Result } from '../rounds/result.ts'
import type { Rows } from '../rounds/rows.ts'
import type { Section } from '../rounds/section.ts'
import type { Case, Facts, Measured, Shape } from '../rounds/shape.ts'

/**
 * Declares an experiment: its options, cases and metrics, how to measure one case once, and its tables. The
 * command, `--help`, the order of rounds, progress, interrupts, files and comparisons are derived from it. Each
 * folder exports one, and `index.ts` lists them.
 */
export interface Experiment<Options extends object = object, Bench = unknown> extends Shape {
  /** The heading of its results. */
  readonly title: string
  /** One line, without a full stop, for the list of commands. */
  readonly summary: string
  /** The text below the options in `--help`: purpose, method, `Examples:`. */
  readonly about: string
  /** Adds the experiment's own options. Every experiment also has `--rounds` and `--duration`. */
  configure(command: Command): void
  /** Fills in options whose defaults depend on others. */
  complete?(options: Options & RoundOptions): Options & RoundOptions
  /** Default of `--rounds`. */
  readonly rounds: number
  /** Default of `--duration`, the seconds of one run; null if a run ends by itself. */
  readonly duration: number | null
  /** Defaults with `--quick`, for a result within a minute. */
  readonly quick: Partial<Options & RoundOptions>
  /** Defaults with `--full`. Default: the command has no `--full`. */
  readonly full?: Partial<Options & RoundOptions>
  /** If given, the experiment runs in its own network namespace, if possible. Returns the builds that it needs. */
  isolated?(options: Options): readonly (RedisBuild | 'tools')[]

  /** Starts the programs that all cases need. `context.defer` and `startRedis` stop them at the end. */
  prepare(context: Context, options: Options & RoundOptions): Promise<Bench>
  cases(bench: Bench, options: Options & RoundOptions): Case[]
  /** The cases to run once, unmeasured, before the first round. Default: none. */
  warmUp?(cases: readonly Case[], options: Options & RoundOptions): readonly Case[]
  /** Measures one case once. Round 0 is the warm-up. */
  measure(one: Case, bench: Bench, run: Run<Options & RoundOptions>): Promise<Measured>
  /** The metrics in the progress line of a finished run. */
  readonly progress: readonly string[]

  sections(rows: Rows, result: Result): readonly Section[]
  /** What the result says, in one sentence for people who have not read the tables; null if it says nothing. */
  conclusion?(rows: Rows): string | null
}

export interface RoundOptions {
  rounds: number
  /** Seconds of one run; 0 for an experiment whose runs end by themselves. */
  duration: number
}

/** One run of a case. */
export interface Run<Options> {
  readonly round: number
  readonly options: Options
  readonly context: Context
  /** Shows the progress within a run. */
  note(text: string): void
}

/** The services of the runner for an experiment. */
export interface Context {
  /** Aborted by Ctrl-C, and by `fail`. */
  readonly signal: AbortSignal
  /** Ends the measurement, for instance when a measured program has ended. */
  fail(reason: Error): void
  /** Registers clean-up, which always runs at the end, in reverse order. */
  defer(undo: () => unknown): void
  /** Starts a build of Redis and stops it at the end, unless the experiment has stopped it. */
  startRedis(options: RedisServerOptions): Promise<RedisServer>
  /** Shows `text` during a part of the preparation. */
  step<T>(text: string, work: () => Promise<T>): Promise<T>
  /** Prints facts and saves them in the result. */
  describe(kind: 'load' | 'software', facts: Facts): void
}
