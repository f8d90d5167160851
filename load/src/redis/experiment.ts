import type { RedisBuild } from '@onetrip/stack/redis.ts'
import type { RedisFacts } from '@onetrip/stack/redis-info.ts'
import type { Command } from 'commander'
import type { Facts } from '../compare/comparable.ts'
import type { CpuReading } from '../drivers/redis/threads.ts'
import type { EarlyEnd } from '../experiment/rounds.ts'
import type { TextTable } from '../table.ts'

/**
 * One of the documents' measurements, repeated. A module in `experiments/` exports one of these, and
 * `command.ts` lists it; everything around it (options that all have, Ctrl-C, starting and stopping
 * Redis, the table, the JSON file) is done for it.
 */
export interface Experiment<Options extends object> {
  /** As on the command line: `short-connections`. */
  readonly name: string
  /** One line, without a full stop, for the list of experiments. */
  readonly summary: string
  /** Below the options in `--help`: what it shows and why, how it measures, examples. */
  readonly about: string
  /** Adds its options; their defaults make a run of less than two minutes. */
  configure(command: Command): void
  /**
   * For load over TCP: has the experiment run in a network namespace of its own, where that is
   * possible (see `isolateProcess`). Returns the builds that it will start, which have to be made
   * before, as there is no internet in there.
   */
  isolated?(options: Options): readonly (RedisBuild | 'tools')[]
  /** For one whose results can be compared: which of them, and what of the options makes the load. */
  compared?(options: Options): { variants: readonly string[]; rounds: number; load: Facts }
  /** What `--quick` sets, unless the user says otherwise: less than 15 seconds. */
  readonly quick: Partial<Options>
  /**
   * Measures. Whatever it started itself is gone when this resolves or rejects.
   *
   * @throws Problem for what the user can put right; the reason of `context.signal`.
   */
  run(context: Context, options: Options): Promise<Findings>
}

/** What an experiment is given. */
export interface Context {
  /** Aborted by Ctrl-C. */
  readonly interrupt: AbortSignal
  /** Aborted by Ctrl-C, and when a Redis of this experiment ends although nobody stopped it. */
  readonly signal: AbortSignal
  readonly progress: Progress
  /** Starts a build of Redis, which is stopped at the end unless the experiment does so before. */
  startRedis(options: ServerOptions): Promise<Server>
  /** Has something undone at the end, whatever happens; the last is undone first. */
  defer(undo: () => unknown): void
}

/** Where one sees that it goes on: a line that changes in a terminal, elsewhere a line per run. */
export interface Progress {
  /** A run begins: `Round 1/5  stock, 1,000 idle`. */
  begin(label: string): void
  /** What it is at just now: `45,100 connections/s`. Seen in a terminal only. */
  update(text: string): void
  /** The run is over, with this result. */
  end(result: string): void
}

export interface ServerOptions {
  build: RedisBuild
  /** Settings of redis.conf. Appending to a file is off, and one I/O thread the default. */
  config?: Record<string, string>
  /** Listen on a port of 127.0.0.1, too? Default: yes. */
  tcp?: boolean
}

/** A Redis that was started for the experiment and serves nobody else. */
export interface Server {
  readonly build: RedisBuild
  readonly pid: number
  /** Path of its Unix socket. */
  readonly socket: string
  /** On 127.0.0.1; 0 without TCP. */
  readonly port: number
  /** `unix://…`, for what is not measured. */
  readonly url: string
  readonly facts: RedisFacts
  readonly config: Readonly<Record<string, string>>
  /** CPU time of its threads since its start. */
  cpu(): Promise<CpuReading>
  /** Does nothing when it was stopped already. */
  stop(): Promise<void>
}

/** What came out. */
interface Findings {
  readonly tables: readonly TextTable[]
  /** Sentences with the result, and what the marks in the tables mean. */
  readonly conclusions: readonly string[]
  /** What the documents measured, to be read beside ours. */
  readonly documents: readonly DocumentFigure[]
  /** Summaries and every sample, for the JSON file. */
  readonly data: object
  /** Why there are fewer rounds than were wanted, from an experiment that makes sense of those. */
  readonly early?: EarlyEnd | null
}

/** A figure as a document prints it; see `documents.ts`. */
export interface DocumentFigure {
  /** What was measured: `GET, 8,000 short connections, before`. */
  readonly what: string
  readonly value: number
  readonly unit: string
  /** Which document, and on what: `Redis短连接性能优化 (ApsaraDB for Redis)`. */
  readonly source: string
}
