import { styleText } from 'node:util'
import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { Redis } from 'ioredis'
import { addRounds, numbers, type RoundsOptions } from '../../drivers/redis/options.ts'
import {
  GENERATOR_LIMIT,
  redisBenchmark,
  requireRedisBenchmark,
} from '../../drivers/redis/redis-benchmark.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import { figure, percent, withRange } from '../../table.ts'
import { pipeliningFigures } from '../documents.ts'
import type { Context, Experiment, Server } from '../experiment.ts'
import { interleave, samplesOf } from '../rounds.ts'
import { type Row, type Run, summarizeRuns } from './pipelining-summary.ts'
import { benchmarkArgs, keyspace, type Work, works } from './pipelining-work.ts'

interface PipeliningOptions extends RoundsOptions {
  pipelines: number[]
  keys: number[]
  clients: number
}

/** Commands of the unmeasured first run of each work, which tells how many a measured one takes. */
const FIRST_REQUESTS = 20_000

/** What it is worth to send many commands at once, and to ask for many keys in one command. */
export const pipelining: Experiment<PipeliningOptions> = {
  name: 'pipelining',
  summary: 'GET and SET in pipelines of 1 to 100, beside MGET and MSET',
  about: `
The documents ran redis-benchmark with and without -P 100. This runs the redis-benchmark of our build
on our build, one I/O thread, over TCP, with their 50 clients. Rates are counted in values: a command
of a pipeline gets or sets one, a MGET of 10 gets 10.

redis-benchmark is one thread and parses every reply: with long pipelines it is the limit, not Redis
(marked *). What Redis spends on a value does not depend on that, nor does the ceiling: the rate at
which its main thread would be busy all the time. The latency is a pipeline's: from its write to the
first byte of an answer.

Examples:
  npm run load -- redis pipelining --quick
  npm run load -- redis pipelining --pipelines 1,8,16,32 --keys 16`,

  configure: (command) => {
    addRounds(command, { rounds: 3, duration: 0.8 })
    command
      .option(
        '--pipelines <list>',
        'commands in one write',
        numbers(1, 10_000),
        [1, 2, 5, 10, 20, 50, 100],
      )
      .option('--keys <list>', 'keys in one MGET or MSET', numbers(2, 1_000), [10, 100])
      .option('--clients <n>', 'connections', wholeNumber(1, 1_000), 50)
  },
  quick: { rounds: 1, duration: 0.3, pipelines: [1, 10, 100], keys: [10] },

  async run(context, options) {
    const { rounds, duration, pipelines, keys, clients } = options
    const server = await context.startRedis({ build: 'patched' })
    const program = await requireRedisBenchmark(context.signal)
    if (!program) throw new Problem('There is no redis-benchmark beside the builds of Redis.')
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    await fill(server, keyspace(keys))
    const bench = { context, server, monitor, program, clients }
    const list = works(pipelines, keys)
    const rates = new Map<Work, number>()
    context.progress.begin('Warm-up')
    for (const work of list) {
      context.progress.update(work.name)
      const requests = (FIRST_REQUESTS * Math.min(work.pipeline, 10)) / Math.min(work.keys, 20)
      const { valuesPerSecond } = await measure(bench, work, requests)
      rates.set(work, valuesPerSecond / work.keys)
    }
    context.progress.end('done')
    const taken = await interleave(context, {
      variants: list,
      rounds,
      label: ({ name }) => name,
      measure: (work) => measure(bench, work, duration * (rates.get(work) ?? 0)),
      describe: (run) =>
        `${figure(run.valuesPerSecond)} values/s  CPU ${figure(run.mainMicrosPerValue)} µs`,
    })
    const rows = summarizeRuns(list, (work) => samplesOf(taken, work))
    return {
      tables: [{ title: `redis-benchmark, ${clients} clients`, ...table(rows) }],
      conclusions: conclusions(rows),
      documents: pipeliningFigures,
      data: {
        summaries: rows,
        samples: taken.map(({ variant, round, sample }) => ({
          work: variant.name,
          round,
          ...sample,
        })),
      },
    }
  },
}

async function fill(server: Server, values: Record<string, string>): Promise<void> {
  const redis = new Redis(server.socket)
  try {
    await redis.mset(values)
  } finally {
    redis.disconnect()
  }
}

interface Bench {
  context: Context
  server: Server
  monitor: RedisMonitor
  program: string
  clients: number
}

async function measure(bench: Bench, work: Work, atLeast: number): Promise<Run> {
  const { context, server, monitor, program, clients } = bench
  const { signal } = context
  const requests = Math.max(clients * work.pipeline, Math.ceil(atLeast))
  const args = benchmarkArgs(work, { port: server.port, clients, requests })
  const [cpuBefore, before] = [await server.cpu(), await monitor.read()]
  const benchmark = await redisBenchmark({ program, args, signal })
  const [cpuAfter, after] = [await server.cpu(), await monitor.read()]
  const cpu = cpuBetween(cpuBefore, cpuAfter)
  // redis-benchmark may send a few commands more than it was asked for, and CONFIG GET at first.
  const values = (after.commands - before.commands) * work.keys
  return {
    valuesPerSecond: benchmark.perSecond * work.keys,
    mainMicrosPerValue: (cpu.mainCpuSeconds * 1e6) / values,
    readsPerValue: (after.reads - before.reads) / values,
    p50: benchmark.p50,
    p99: benchmark.p99,
    redisDemand: cpu.mainDemand,
    generatorDemand: benchmark.demand,
    requests,
    command: benchmark.command,
  }
}

/** What Redis spends on a pipeline as such and on each of its commands, from a short and a long one. */
function costs(short: Row, long: Row): { trip: number; command: number } {
  const [few, many] = [short.mainMicrosPerValue.median, long.mainMicrosPerValue.median]
  const trip = (few - many) / (1 / short.work.pipeline - 1 / long.work.pipeline)
  return { trip, command: few - trip / short.work.pipeline }
}

function table(rows: readonly Row[]) {
  return {
    head: [
      'work',
      'values/s\nmedian (range)',
      '× one at\na time',
      'p50\nms',
      'p99\nms',
      'reads\n/value',
      'main\nCPU µs\n/value',
      'ceiling\nvalues/s',
      'Redis\nbusy',
      'generator\nbusy',
    ],
    rows: rows.map((row) => [
      `${row.work.name}${row.generatorAtLimit ? ' *' : ''}`,
      withRange(row.valuesPerSecond),
      figure(row.ratio.median),
      figure(row.p50.median),
      figure(row.p99.median),
      figure(row.readsPerValue.median),
      figure(row.mainMicrosPerValue.median),
      figure(row.ceiling),
      percent(row.redisDemand.median),
      row.generatorDemand ? percent(row.generatorDemand.median) : '-',
    ]),
  }
}

function conclusions(rows: readonly Row[]): string[] {
  const lines = ['GET', 'SET'].flatMap((name) => {
    const own = rows.filter(({ work }) => work.command[0] === name)
    const [single, longest] = [own[0], own.at(-1)]
    if (!single || !longest || single === longest) return []
    const { trip, command } = costs(single, longest)
    const text =
      `${longest.work.name} does ${figure(longest.ratio.median)} times as many commands per second as ` +
      `-P ${single.work.pipeline}. A round trip costs Redis ${figure(trip)} µs however much it carries, ` +
      `and each ${name} in it ${figure(command)} µs.`
    return [styleText('bold', text)]
  })
  if (rows.some(({ generatorAtLimit }) => generatorAtLimit)) {
    lines.push(
      `* redis-benchmark ran or wanted to run ${GENERATOR_LIMIT * 100} % of the time or more: it may ` +
        'have been the limit. Trust the CPU time and the ceiling of this row, not its rate.',
    )
  }
  return lines
}
