import { stripVTControlCharacters, styleText } from 'node:util'
import { print, step } from '@onetrip/stack/terminal.ts'
import { isIsolated, isolateProcess } from '../drivers/redis/generator/program.ts'
import { systemLimits } from '../drivers/redis/limits.ts'
import { runProgress } from '../experiment/progress.ts'
import { earlyText, endingOf, throwFailure } from '../experiment/rounds.ts'
import { gitState, machine } from '../measure/machine.ts'
import { DISTURBED, readFamilyCpu, readMachineCpu, shareElsewhere } from '../measure/machine-cpu.ts'
import { type OutputFlags, prepareOutputs, withoutOutputs } from '../report/outputs.ts'
import { percent, renderTable } from '../table.ts'
import type { Context, Experiment, Progress, Server } from './experiment.ts'
import { circumstances, documentLines } from './report.ts'
import type { ExperimentResult } from './result.ts'
import { requireBuild, startServer } from './server.ts'

/** What every experiment is told besides its own options. */
export interface CommonOptions extends OutputFlags {
  quick?: boolean
}

/**
 * Runs one experiment, prints what came out, writes the files that were asked for. Every Redis of it is stopped when this
 * resolves or rejects.
 *
 * @param commandLine for the record.
 * @throws Problem, ProgramError when it cannot be measured; the reason of `interrupt`.
 */
export async function runExperiment<Options extends object>(
  experiment: Experiment<Options>,
  options: Options & CommonOptions,
  commandLine: string,
  interrupt: AbortSignal,
): Promise<ExperimentResult> {
  const outputs = await prepareOutputs(options)
  if (experiment.isolated && !isIsolated()) {
    for (const build of experiment.isolated(options)) await requireBuild(build, interrupt)
    await isolateProcess(interrupt)
  }
  const date = new Date().toISOString()
  const broken = new AbortController()
  const signal = AbortSignal.any([interrupt, broken.signal])
  const servers: Server[] = []
  const { progress, close } = experimentProgress()
  await using undo = new AsyncDisposableStack()
  undo.defer(close)
  const context: Context = {
    interrupt,
    signal,
    progress,
    defer: (work) => undo.defer(async () => void (await work())),
    async startRedis(wanted) {
      const server = await step(`Starting Redis (${wanted.build})`, () =>
        startServer(wanted, signal, (reason) => broken.abort(reason)),
      )
      servers.push(server)
      undo.defer(() => server.stop())
      return server
    },
  }
  const [machineBefore, ownBefore] = [await readMachineCpu(), await readFamilyCpu(process.pid)]
  print(`${styleText('bold', experiment.name)}: ${experiment.summary}\n`)
  let findings: Awaited<ReturnType<typeof experiment.run>>
  try {
    findings = await experiment.run(context, options)
  } catch (error) {
    // What went away explains the failure better than whoever noticed it.
    signal.throwIfAborted()
    throw error
  }
  close()
  const elsewhere = shareElsewhere(
    machineBefore,
    await readMachineCpu(),
    ((await readFamilyCpu(process.pid)) ?? 0) - (ownBefore ?? 0),
  )
  const { tables, conclusions, documents, data, early = null } = findings
  const parts = [
    earlyText(early).trim(),
    circumstances(machine(), servers),
    ...(experiment.isolated && !isIsolated() ? [await warnOfSharedNetwork()] : []),
    ...tables.map(renderTable),
    [...conclusions, ...disturbance(elsewhere)].join('\n'),
    documentLines(documents),
  ]
  print(`${parts.filter((part) => part !== '').join('\n\n')}`)
  const given = withoutOutputs(options)
  const result: ExperimentResult = {
    format: 'onetrip-load-redis/1',
    experiment: experiment.name,
    summary: experiment.summary,
    date,
    command: commandLine,
    git: await gitState(),
    machine: machine(),
    elsewhere,
    network: isIsolated() ? 'own namespace' : 'shared',
    limits: await systemLimits(),
    options: given,
    servers: servers.map(({ build, facts, config }) => ({ started: build, ...facts, config })),
    documents,
    tables,
    conclusions: conclusions.map(stripVTControlCharacters),
    ...(early && endingOf(early)),
    ...data,
  }
  await outputs.save(result)
  throwFailure(early)
  return result
}

/** Says it when other programs had much of the CPU while this ran. */
function disturbance(elsewhere: number | null): string[] {
  if (elsewhere === null || elsewhere < DISTURBED) return []
  return [
    `${percent(elsewhere)} of the CPU time went to programs that are no part of this, or to other guests ` +
      'of the host: trust the CPU times rather than the rates and latencies, or repeat it.',
  ]
}

/** What distorts load over TCP where there is no network namespace of one's own. */
async function warnOfSharedNetwork(): Promise<string> {
  const { trackedConnections } = await systemLimits()
  const tracked = trackedConnections
    ? `Connection tracking is on (${trackedConnections} entries; a container engine or a firewall): it makes each short connection over TCP dearer, and when it is full, SYNs are dropped.`
    : 'Closed connections (TIME_WAIT) of earlier runs may be in the way.'
  return `Note: measured in the network of this machine, for it gives us none of our own. ${tracked}`
}

function experimentProgress(): { progress: Progress; close: () => void } {
  const line = runProgress()
  let label = ''
  let closed = false
  return {
    progress: {
      begin(text) {
        label = text
        line.begin(label)
      },
      update: (text) => line.begin(`${label}  ${text}`),
      end(result) {
        line.begin(label)
        line.end(result)
      },
    },
    close() {
      if (!closed) line.close()
      closed = true
    },
  }
}
