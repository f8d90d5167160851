import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { httpLoad } from '../compare/parts.ts'
import { plannedComparison } from '../compare/planned.ts'
import type { Variant } from '../contenders.ts'
import type { Progress } from '../drivers/http/generator.ts'
import { findGenerator, type Generator } from '../drivers/http/generators.ts'
import { logInEverywhere, openStand, type Stand } from '../drivers/http/stand.ts'
import type { Target } from '../drivers/http/target.ts'
import { workload } from '../drivers/http/workload.ts'
import { runProgress } from '../experiment/progress.ts'
import {
  earlyText,
  endingOf,
  type RoundsRun,
  runRounds,
  throwFailure,
} from '../experiment/rounds.ts'
import { gitState } from '../measure/machine.ts'
import { prepareOutputs } from '../report/outputs.ts'
import { counted, errorKinds, figure } from '../table.ts'
import type { HttpOptions } from './options.ts'
import { conclusion, header, latencyTable, ratioTable, table } from './report.ts'
import type { Circumstances, HttpResult, HttpSettings } from './result.ts'
import { describeSample, requireAnswers, type Sample, takeSample } from './sample.ts'
import { summarizeSamples, type VariantSummary } from './summary.ts'

/**
 * The whole of `npm run load -- http`: finds or starts a stack, runs the rounds, prints the table,
 * writes the files. What it started and logged in is gone when it resolves or rejects. An interrupt,
 * or a failure, leaves what the rounds gave that were complete by then.
 *
 * @param command the command line, for the record.
 * @returns whether something got worse than in the result that `--compare` names.
 * @throws Problem, ProgramError when it cannot be measured, or not to the end; the reason of `interrupt`
 *   when no round was complete.
 */
export async function runHttp(
  wanted: HttpOptions,
  command: string,
  interrupt: AbortSignal,
): Promise<boolean> {
  const comparison = await plannedComparison('http', wanted, { ...wanted, load: httpLoad(wanted) })
  const outputs = await prepareOutputs(wanted)
  const generator = await findGenerator(wanted)
  const date = new Date().toISOString()
  const { circumstances, stack, started, run } = await measure(wanted, generator, interrupt)
  const { samples, early } = run
  const { options } = circumstances
  const summaries = summarizeSamples(samples, options.variants)
  const failed = totalFailure(summaries)
  if (!failed) {
    if (early) print(earlyText(early, `the ${roundsText(samples)}`))
    const tables = [table(summaries), latencyTable(summaries), ratioTable(summaries)]
    const parts = [...tables, conclusion(summaries)]
    print(parts.filter((part) => part !== '').join('\n\n'))
  }
  const result: HttpResult = {
    format: 'onetrip-load-http/3',
    date,
    command,
    git: await gitState(),
    stack,
    ...circumstances,
    redis: { ...circumstances.redis, started },
    ...endingOf(early),
    summaries,
    samples,
  }
  await outputs.save(result)
  if (failed) throw failed
  throwFailure(early)
  return comparison?.finish(result) ?? false
}

const roundsText = (samples: readonly Sample[]) =>
  counted(Math.max(...samples.map(({ round }) => round)), 'round')

async function measure(wanted: HttpOptions, generator: Generator, interrupt: AbortSignal) {
  await using cleanup = new AsyncDisposableStack()
  const stand = await openStand(wanted, cleanup, interrupt)
  const { kind, redis } = stand.target
  const settings = settingsOf(wanted, stand)
  const circumstances: Circumstances = {
    ...stand.circumstances,
    generator: generator.name,
    options: settings,
  }
  print(`\n${header(circumstances)}\n`)
  const tokens = await logInEverywhere(stand, settings.sessions, cleanup)
  const owned = wanted.iOwnThisHost === true
  const run = await runVariants({ settings, generator, stand, tokens, owned, interrupt })
  return { circumstances, stack: kind, started: redis.build, run }
}

function settingsOf(wanted: HttpOptions, { variants }: Stand): HttpSettings {
  const { connections, duration, rounds, warmup, generator, workload } = wanted
  const { sessions, items, reads, seed } = wanted
  const load = { connections, duration, rounds, warmup, generator }
  return { variants, ...load, workload, sessions, items, reads, seed }
}

interface Runs {
  settings: HttpSettings
  generator: Generator
  stand: Stand
  tokens: ReadonlyMap<Variant, readonly string[]>
  owned: boolean
  interrupt: AbortSignal
}

async function runVariants(runs: Runs): Promise<RoundsRun<Sample>> {
  const { settings, generator, stand, tokens, owned, interrupt } = runs
  const { target, monitor, signal } = stand
  const progress = runProgress()
  const take = (api: Target['apis'][number], seconds: number, round: number) =>
    takeSample({
      ...api,
      round,
      monitor,
      calls: workload({ ...settings, tokens: tokens.get(api.variant) ?? [] }),
      saturate: generator.saturate,
      owned,
      seconds,
      signal,
      onProgress(now) {
        progress.update(progressLine(now))
        stand.watch(api.url, now)
      },
    })
  const warmUp = async (api: Target['apis'][number]) => {
    const sample = await take(api, settings.warmup, 0)
    requireAnswers(sample)
    return sample
  }
  try {
    return await runRounds(
      { interrupt, signal, progress },
      {
        variants: target.apis,
        rounds: settings.rounds,
        label: ({ variant }) => variant,
        warmUp: settings.warmup > 0 ? warmUp : undefined,
        measure: (api, round) => take(api, settings.duration, round),
        describe: describeSample,
      },
    )
  } finally {
    progress.close()
  }
}

function progressLine({ requestsPerSecond, p50, p99 }: Progress): string {
  const latency =
    p50 === undefined || p99 === undefined ? '' : `  p50 ${figure(p50)} ms  p99 ${figure(p99)} ms`
  return `${figure(requestsPerSecond)} requests/s${latency}`
}

/** What to say instead of showing a table when some variant did not work at all. */
function totalFailure(summaries: readonly Pick<VariantSummary, 'variant' | 'ok' | 'errors'>[]) {
  const failed = summaries.filter(({ ok }) => ok === 0)
  if (failed.length === 0) return null
  const names = failed.map(({ variant, errors }) => `${variant} (${errorKinds(errors)})`)
  return new Problem(`No request succeeded for ${names.join(', ')}: there is nothing to compare.`)
}
