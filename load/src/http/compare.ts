import { gitState, machine } from '../measure/machine.ts'
import { RedisMonitor } from '../measure/redis-info.ts'
import { Problem } from '../problem.ts'
import { hideCredentials } from '../stack/address.ts'
import { isReady, type Variant } from '../stack/api.ts'
import { clientOf } from '../stack/contenders.ts'
import { describeExit } from '../stack/program.ts'
import { errorKinds, figure } from '../table.ts'
import { print, step } from '../terminal.ts'
import type { Progress } from './generator.ts'
import { findGenerator, type Generator } from './generators.ts'
import type { HttpOptions } from './options.ts'
import { runProgress } from './progress.ts'
import { type Circumstances, conclusion, header, ratioTable, table } from './report.ts'
import { resultFile } from './result-file.ts'
import { type Sample, takeSample } from './sample.ts'
import { logIn } from './sessions.ts'
import { orderOf, summarizeSamples, type VariantSummary } from './summary.ts'
import { findTarget, type Target } from './target.ts'
import { workload } from './workload.ts'

/**
 * The whole of `npm run load -- http`: finds or starts a stack, runs the rounds, prints the table,
 * writes the file. What it started and logged in is gone when it resolves or rejects.
 *
 * @param command the command line, for the record.
 * @throws Problem, ProgramError when it cannot be measured; the reason of `interrupt`.
 */
export async function compareHttp(
  wanted: HttpOptions,
  command: string,
  interrupt: AbortSignal,
): Promise<void> {
  const file = wanted.json === undefined ? null : await resultFile(wanted.json)
  const generator = await findGenerator(wanted)
  await using cleanup = new AsyncDisposableStack()
  const target = await findTarget(wanted, interrupt)
  const options = { ...wanted, variants: target.apis.map(({ variant }) => variant) }
  cleanup.defer(() => (target.kind === 'own' ? stopTarget(target) : target.close()))
  const monitor = await RedisMonitor.connect(target.redis.url)
  cleanup.defer(() => monitor.close())
  const broken = new AbortController()
  watch(target, monitor, broken)
  const signal = AbortSignal.any([interrupt, broken.signal])

  const [first] = target.apis
  if (!first) throw new Problem('There is no variant to measure.')
  const date = new Date().toISOString()
  const sessions = await logIn(first.url, options.sessions ?? options.connections, signal)
  cleanup.defer(() => sessions.end())
  const { url, transport } = target.redis
  const circumstances: Circumstances = {
    machine: machine(),
    redis: { ...(await monitor.facts()), transport, url: hideCredentials(url) },
    poolSize: target.poolSize,
    generator: generator.name,
    clients: await clientsOf(options.variants),
    options,
    sessions: sessions.tokens.length,
  }
  print(`\n${header(circumstances)}\n`)

  const samples = await runRounds({
    options,
    generator,
    target,
    monitor,
    tokens: sessions.tokens,
    broken,
    signal,
  })
  const summaries = summarizeSamples(samples, options.variants)
  const failed = totalFailure(summaries)
  if (!failed) {
    const parts = [table(summaries), ratioTable(summaries), conclusion(summaries)]
    print(parts.filter((part) => part !== '').join('\n\n'))
  }
  if (file) {
    const { variants, json: _, ...rest } = options
    const result = {
      format: 'onetrip-load-http/2',
      date,
      command,
      git: await gitState(),
      stack: target.kind,
      ...circumstances,
      redis: { ...circumstances.redis, started: target.redis.build },
      options: { variants, ...rest },
      summaries,
      samples,
    }
    await file.save(`${JSON.stringify(result, null, 2)}\n`)
    print(`\nAll samples are in ${file.path}`)
  }
  if (failed) throw failed
}

async function clientsOf(variants: readonly Variant[]): Promise<Circumstances['clients']> {
  const clients: Circumstances['clients'] = {}
  for (const variant of variants) {
    const client = await clientOf(variant)
    if (client !== null) clients[variant] = client
  }
  return clients
}

async function stopTarget(target: Target): Promise<void> {
  await step('Stopping the stack of this comparison', () => target.close())
}

/** Aborts `broken`, with the reason, when a program of the stack is gone. */
function watch(target: Target, monitor: RedisMonitor, broken: AbortController): void {
  void target.lost.then(async (program) => {
    const last = program.lastLines.slice(-12).map((line) => `\n  ${line}`)
    const exit = describeExit(await program.exited)
    broken.abort(new Problem(`${program.name} ended by itself (${exit}):${last.join('')}`))
  })
  void monitor.lost.then(() => {
    const where = hideCredentials(target.redis.url)
    const more = target.kind === 'running' ? ' npm start tells more, where it runs.' : ''
    broken.abort(new Problem(`Redis at ${where} closed the connection: it was stopped.${more}`))
  })
}

interface Rounds {
  options: HttpOptions
  generator: Generator
  target: Target
  monitor: RedisMonitor
  tokens: readonly string[]
  broken: AbortController
  signal: AbortSignal
}

async function runRounds(rounds: Rounds): Promise<Sample[]> {
  const { options, generator, target, monitor, tokens, broken, signal } = rounds
  const { connections, items, seed } = options
  const views = workload({ tokens, connections, items, seed })
  const samples: Sample[] = []
  const progress = runProgress()
  const width = Math.max(...options.variants.map((variant) => variant.length))

  const run = async (api: Target['apis'][number], seconds: number, round: number) => {
    const when = round === 0 ? 'Warm-up' : `Round ${round}/${options.rounds}`
    progress.begin(
      `${when.padEnd(`Round ${options.rounds}/${options.rounds}`.length)}  ${api.variant.padEnd(width)}`,
    )
    const sample = await takeSample({
      ...api,
      round,
      monitor,
      views,
      saturate: generator.saturate,
      owned: options.iOwnThisHost === true,
      seconds,
      signal,
      onProgress(now) {
        progress.rate(now.requestsPerSecond)
        void giveUpIfGone(api.url, now, broken)
      },
    })
    progress.end(oneLine(sample))
    return sample
  }

  try {
    for (const api of options.warmup > 0 ? target.apis : []) {
      const failed = totalFailure([await run(api, options.warmup, 0)])
      if (failed) throw failed
    }
    for (let round = 1; round <= options.rounds; round++) {
      for (const api of orderOf(target.apis, round - 1)) {
        samples.push(await run(api, options.duration, round))
      }
    }
  } catch (error) {
    // What went away explains the failure better than the request that noticed.
    signal.throwIfAborted()
    throw error
  } finally {
    progress.close()
  }
  return samples
}

function oneLine({ requestsPerSecond, latency, errors }: Sample): string {
  const kinds = errorKinds(errors)
  const failed = kinds === '0' ? '' : `  errors ${kinds}`
  return `${figure(requestsPerSecond)} requests/s  p99 ${figure(latency.p99)} ms${failed}`
}

/** A second of nothing but failures: the API may be gone, and then there is nothing to measure. */
async function giveUpIfGone(url: string, now: Progress, broken: AbortController): Promise<void> {
  if (now.requestsPerSecond > 0 || now.failures === 0 || (await isReady(url))) return
  broken.abort(new Problem(`The API at ${url} is not ready any more.`))
}

/** What to say instead of showing a table when some variant did not work at all. */
function totalFailure(summaries: readonly Pick<VariantSummary, 'variant' | 'ok' | 'errors'>[]) {
  const failed = summaries.filter(({ ok }) => ok === 0)
  if (failed.length === 0) return null
  const names = failed.map(({ variant, errors }) => `${variant} (${errorKinds(errors)})`)
  return new Problem(`No request succeeded for ${names.join(', ')}: there is nothing to compare.`)
}
