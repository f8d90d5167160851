import { print } from '@onetrip/stack/terminal.ts'
import { latencyLoad } from '../compare/parts.ts'
import { plannedComparison } from '../compare/planned.ts'
import { logInEverywhere, openStand, type Stand } from '../drivers/http/stand.ts'
import { arrivalTimes, requireBounded, secondsAt } from '../drivers/pacer/arrivals.ts'
import { startGenerator } from '../drivers/pacer/generator.ts'
import { runProgress } from '../experiment/progress.ts'
import {
  type Ending,
  earlyText,
  endingOf,
  type RoundsRun,
  runRounds,
  throwFailure,
} from '../experiment/rounds.ts'
import { header } from '../http/report.ts'
import { requireAnswers } from '../http/sample.ts'
import { gitState } from '../measure/machine.ts'
import { packageVersion } from '../measure/package-version.ts'
import { prepareOutputs } from '../report/outputs.ts'
import { errorKinds, figure } from '../table.ts'
import { callsFor, capacityOf, type Runs, ratesOf } from './capacity.ts'
import type { LatencyOptions } from './options.ts'
import { conclusions, lengthLine, rateText, tables } from './report.ts'
import type { LatencyRate, LatencyResult, LatencySettings } from './result.ts'
import { type LatencyRun, takeLatencies } from './sample.ts'
import { summarizeLatencies } from './summary.ts'

/**
 * The whole of `npm run load -- latency`: finds or starts a stack, finds out what the variants can do,
 * runs the rounds, prints the tables, writes the files. What it started and logged in is gone when it
 * resolves or rejects. An interrupt, or a failure, leaves what the rounds gave that were complete by then.
 *
 * @param command the command line, for the record.
 * @returns whether something got worse than in the result that `--compare` names.
 * @throws Problem, ProgramError when it cannot be measured, or not to the end; the reason of `interrupt`
 *   when no round was complete.
 */
export async function runLatency(
  wanted: LatencyOptions,
  command: string,
  interrupt: AbortSignal,
): Promise<boolean> {
  const load = latencyLoad(wanted)
  const comparison = await plannedComparison('latency', wanted, { ...wanted, load })
  for (const rate of wanted.rate ?? []) requireBounded({ rate, seconds: wanted.duration })
  const outputs = await prepareOutputs(wanted)
  const date = new Date().toISOString()
  const older = comparison?.document as LatencyResult | undefined
  const known = wanted.rate ? undefined : older?.rates
  const { run, ...measured } = await measure(wanted, known, interrupt)
  const { rates, options } = measured
  const result: LatencyResult = {
    format: 'onetrip-load-latency/1',
    date,
    command,
    git: await gitState(),
    ...measured,
    ...endingOf(run.early),
    summaries: summarizeLatencies(run.samples, rates, options.variants),
    samples: run.samples.map(({ sample }) => sample),
  }
  if (run.early) print(earlyText(run.early))
  print([tables(result), conclusions(result)].filter((part) => part !== '').join('\n\n'))
  await outputs.save(result)
  throwFailure(run.early)
  return comparison?.finish(result) ?? false
}

type Measured = Omit<
  LatencyResult,
  'format' | 'date' | 'command' | 'git' | keyof Ending | 'summaries' | 'samples'
>

async function measure(
  wanted: LatencyOptions,
  known: LatencyRate[] | undefined,
  interrupt: AbortSignal,
): Promise<Measured & { run: RoundsRun<LatencyRun> }> {
  await using cleanup = new AsyncDisposableStack()
  const stand = await openStand(wanted, cleanup, interrupt)
  const { circumstances, target } = stand
  const options = settingsOf(wanted, stand)
  const generator = await packageVersion('undici')
  print(`\n${header({ ...circumstances, generator, options })}\n`)
  const tokens = await logInEverywhere(stand, options.sessions, cleanup)
  const progress = runProgress()
  cleanup.defer(() => progress.close())
  const owned = wanted.iOwnThisHost === true
  const runs: Runs = { stand, options, tokens, owned, interrupt, progress }
  const capacity = wanted.rate || known ? null : await capacityOf(runs)
  const rates = known ?? ratesOf(wanted, capacity)
  if (options.requests) print(`${lengthLine(rates, options)}\n`)
  return {
    ...circumstances,
    redis: { ...circumstances.redis, started: target.redis.build },
    stack: target.kind,
    generator,
    options,
    capacity,
    rates,
    run: await runRates(runs, rates),
  }
}

function settingsOf(wanted: LatencyOptions, { variants }: Stand): LatencySettings {
  const { connections, duration, requests, rounds, warmup, arrivals } = wanted
  const { workload, sessions, items, reads, seed } = wanted
  const load = { connections, duration, requests, rounds, warmup, arrivals }
  return { variants, ...load, workload, sessions, items, reads, seed }
}

async function runRates(runs: Runs, rates: readonly LatencyRate[]): Promise<RoundsRun<LatencyRun>> {
  const { stand, options, owned, interrupt, progress } = runs
  const { monitor, signal, target } = stand
  const { arrivals, seed } = options
  const generator = startGenerator(signal)
  const pairs = rates.flatMap((rate) => target.apis.map((api) => ({ rate, api })))
  const highest = rates.at(-1)
  const take = ({ rate, api }: (typeof pairs)[number], seconds: number, round: number) =>
    takeLatencies({
      ...api,
      round,
      rate: rate.requestsPerSecond,
      schedule: arrivalTimes({
        rate: rate.requestsPerSecond,
        seconds,
        arrivals,
        seed: seed + round, // the same for all variants of a round
      }),
      monitor,
      calls: callsFor(runs, api),
      generator,
      owned,
      signal,
      onProgress(now) {
        const line = now.line > 0 ? `  ${figure(now.line)} in line` : ''
        progress.update(
          `${figure(now.requestsPerSecond)} requests/s  p99 ${figure(now.p99)} ms${line}`,
        )
        stand.watch(api.url, now)
      },
    })
  try {
    for (const api of options.warmup > 0 ? target.apis : []) {
      if (!highest) break
      signal.throwIfAborted()
      progress.begin(`Warm-up  ${api.variant}`)
      const { sample } = await take({ rate: highest, api }, options.warmup, 0)
      requireAnswers(sample)
      progress.end(describe(sample))
    }
    return await runRounds(
      { interrupt, signal, progress },
      {
        variants: pairs,
        rounds: options.rounds,
        label: ({ rate, api }) => `${rateText(rate, null)}  ${api.variant}`,
        measure: (pair, round) =>
          take(pair, secondsAt(pair.rate.requestsPerSecond, options), round),
        describe: ({ sample }) => describe(sample),
      },
    )
  } finally {
    await generator.close()
  }
}

function describe({ latency, notSent, errors }: LatencyRun['sample']): string {
  const ms = (value: number | null) => figure(value ?? Number.NaN)
  const failed = errorKinds({ ...(notSent > 0 && { 'not sent': notSent }), ...errors })
  return `p50 ${ms(latency.p50)} ms  p99 ${ms(latency.p99)} ms  max ${ms(latency.max)} ms${failed === '0' ? '' : `  ${failed}`}`
}
