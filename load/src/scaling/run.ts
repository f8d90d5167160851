import { apiSettings } from '@onetrip/stack/api-settings.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { scalingLoad } from '../compare/parts.ts'
import { plannedComparison } from '../compare/planned.ts'
import { findGenerator, type Generator } from '../drivers/http/generators.ts'
import { clientsOf } from '../drivers/http/stand.ts'
import { runProgress } from '../experiment/progress.ts'
import { type EarlyEnd, earlyEnd, earlyText, endingOf, throwFailure } from '../experiment/rounds.ts'
import { gitState, machine } from '../measure/machine.ts'
import { prepareOutputs } from '../report/outputs.ts'
import { counted } from '../table.ts'
import { openBench } from './bench.ts'
import type { ScalingOptions } from './options.ts'
import { conclusions, seriesTable } from './report.ts'
import type { ScalingResult, ScalingSettings } from './result.ts'
import { measureSeries } from './series.ts'

/**
 * The whole of `npm run load -- scaling`: starts what it needs, measures one dimension after the other,
 * prints the tables, writes the files. What it started is gone when it resolves or rejects. An interrupt,
 * or a failure, leaves the rounds that were complete by then.
 *
 * @param command the command line, for the record.
 * @returns whether something got worse than in the result that `--compare` names.
 * @throws Problem, ProgramError when it cannot be measured, or not to the end; the reason of `interrupt`
 *   when no round was complete.
 */
export async function runScaling(
  wanted: ScalingOptions,
  command: string,
  interrupt: AbortSignal,
): Promise<boolean> {
  const load = scalingLoad(wanted)
  const comparison = await plannedComparison('scaling', wanted, { ...wanted, load })
  const outputs = await prepareOutputs(wanted)
  const generator = await findGenerator(wanted)
  const date = new Date().toISOString()
  const { early, ...measured } = await measure(wanted, generator, interrupt)
  const { series } = measured
  const variants = series.flatMap(({ points }) => points.flatMap((point) => point.summaries))
  const result: ScalingResult = {
    format: 'onetrip-load-scaling/1',
    ...{ date, command, git: await gitState(), machine: machine() },
    poolSize: apiSettings().poolSize,
    generator: generator.name,
    clients: await clientsOf([...new Set(variants.map(({ variant }) => variant))]),
    options: settingsOf(wanted),
    ...endingOf(early),
    ...measured,
  }
  if (early) print(earlyText(early))
  const parts = [...series.map(seriesTable), conclusions(series)]
  print(parts.filter((part) => part !== '').join('\n\n'))
  await outputs.save(result)
  throwFailure(early)
  return comparison?.finish(result) ?? false
}

type Measured = Pick<ScalingResult, 'redis' | 'series'> & {
  early: EarlyEnd | null
}

async function measure(
  wanted: ScalingOptions,
  generator: Generator,
  interrupt: AbortSignal,
): Promise<Measured> {
  await using cleanup = new AsyncDisposableStack()
  const bench = await openBench(cleanup, interrupt)
  const { facts, build } = bench.redis
  const { cpu, cores, kernel } = machine()
  print(`Machine  ${cpu}, ${counted(cores, 'core')}, ${kernel}`)
  print(
    `Redis    ${facts.version}, build ${facts.build}, ${counted(facts.ioThreads, 'I/O thread')}`,
  )
  print(`Load     ${generator.name}, ${counted(wanted.rounds, 'round')} of ${wanted.duration} s\n`)
  const progress = runProgress()
  cleanup.defer(() => progress.close())
  const measured: Measured = { redis: { ...facts, started: build }, series: [], early: null }
  const context = { bench, options: wanted, generator, progress }
  try {
    for (const by of wanted.only) {
      const { series, early } = await measureSeries(by, context)
      measured.series.push(series)
      if (early) return { ...measured, early }
    }
    return measured
  } catch (error) {
    if (measured.series.length === 0) throw error
    return { ...measured, early: await earlyEnd(error, bench) }
  }
}

function settingsOf(wanted: ScalingOptions): ScalingSettings {
  const { only, variants, duration, rounds, warmup, generator } = wanted
  const { workload, sessions, items, reads, seed } = wanted
  const load = { duration, rounds, warmup, generator }
  return { only, variants, ...load, workload, sessions, items, reads, seed }
}
