import { Command } from 'commander'
import { httpCommand, httpOptions } from '../http/options.ts'
import { runHttp } from '../http/run.ts'
import { latencyCommand, latencyOptions } from '../latency/options.ts'
import { runLatency } from '../latency/run.ts'
import { portsExperiment } from '../ports/experiment.ts'
import type { Experiment } from '../redis/experiment.ts'
import { client } from '../redis/experiments/client.ts'
import { info } from '../redis/experiments/info.ts'
import { ioThreads } from '../redis/experiments/io-threads.ts'
import { pipelining } from '../redis/experiments/pipelining.ts'
import { shortConnections } from '../redis/experiments/short-connections.ts'
import { slowReader } from '../redis/experiments/slow-reader.ts'
import { runExperiment } from '../redis/run.ts'
import type { OutputFlags } from '../report/outputs.ts'
import { storeBenchmark } from '../store/benchmark.ts'
import { inProcessOfItsOwn } from './own-process.ts'

export type Preset = 'quick' | 'usual' | 'full'

/** A measurement with a command of its own. */
export interface AllPart {
  readonly name: string
  /** About how long it takes, in seconds; null where it is left out, unless named. */
  readonly seconds: Readonly<Record<Preset, number | null>>
  /** Measures, and prints what came out; results go where `outputs` says. */
  run(plan: {
    preset: Preset
    outputs: OutputFlags
    commandLine: string
    interrupt: AbortSignal
  }): Promise<unknown>
}

// Of --quick as measured on 2 cores on 2026-11-21, else worked out.
export const allParts: readonly AllPart[] = [
  {
    name: 'http',
    seconds: { quick: 35, usual: 70, full: 620 },
    async run({ preset, outputs, commandLine, interrupt }) {
      const command = parsed(httpCommand(), preset)
      await runHttp({ ...httpOptions(command), ...outputs }, commandLine, interrupt)
    },
  },
  {
    name: 'latency',
    seconds: { quick: 50, usual: 140, full: 650 },
    async run({ preset, outputs, commandLine, interrupt }) {
      const command = parsed(latencyCommand(), preset)
      await runLatency({ ...latencyOptions(command), ...outputs }, commandLine, interrupt)
    },
  },
  experimentPart(storeBenchmark, { quick: 15, usual: 90, full: 90 }),
  experimentPart(client, { quick: null, usual: 40, full: 40 }),
  experimentPart(pipelining, { quick: 10, usual: 60, full: 60 }),
  experimentPart(slowReader, { quick: null, usual: null, full: 30 }),
  isolatedPart(['redis', info.name], { quick: null, usual: 45, full: 45 }),
  isolatedPart(['redis', shortConnections.name], { quick: 12, usual: 80, full: 80 }),
  isolatedPart(['redis', ioThreads.name], { quick: null, usual: 60, full: 60 }),
  isolatedPart([portsExperiment.name], { quick: null, usual: null, full: 45 }),
]

/** A command's options as they are with `--quick`, `--full` or neither. */
function parsed(command: Command, preset: Preset): Command {
  return command.parse(preset === 'usual' ? [] : [`--${preset}`], { from: 'user' })
}

function experimentPart<Options extends object>(
  experiment: Experiment<Options>,
  seconds: AllPart['seconds'],
): AllPart {
  return {
    name: experiment.name,
    seconds,
    async run({ preset, outputs, commandLine, interrupt }) {
      const command = new Command()
      experiment.configure(command)
      const options: Options = {
        ...command.opts<Options>(),
        ...(preset === 'quick' && experiment.quick),
      }
      await runExperiment(experiment, { ...options, ...outputs }, commandLine, interrupt)
    },
  }
}

/** An experiment that begins its process anew in a network of its own (`Experiment.isolated`). */
function isolatedPart(command: readonly string[], seconds: AllPart['seconds']): AllPart {
  return {
    name: command.at(-1) ?? '',
    seconds,
    async run({ preset, outputs, interrupt }) {
      const args = preset === 'quick' ? [...command, '--quick'] : command
      outputs.collect?.(await inProcessOfItsOwn(args, interrupt))
    },
  }
}
