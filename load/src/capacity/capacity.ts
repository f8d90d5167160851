import { list, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import { experimentCommand, type Invocation, optionsOf } from '../command.ts'
import type { Experiment } from '../experiment/experiment.ts'
import { Rows } from '../experiment/rows.ts'
import type { Table } from '../experiment/section.ts'
import { cluster } from '../experiments/cluster/cluster.ts'
import { memory } from '../experiments/memory/memory.ts'
import { published } from '../reporting/document.ts'
import { plain, tableMarkdown } from '../reporting/markdown.ts'
import { tableText } from '../reporting/terminal.ts'
import { runExperiment } from '../run.ts'
import { type Known, readMeasurements } from './measurements.ts'
import { type Machines, machineDefaults, planFor, type Size } from './model.ts'
import {
  accuracyOf,
  cpuCheck,
  defaults,
  documentedPlans,
  extrapolations,
  inputTable,
  memoryCheck,
  needsOf,
  needsOfAll,
  type Planned,
  SECONDS_PER_VIEW,
} from './tables.ts'
import { quantity } from './units.ts'

interface Flags extends Omit<Size, 'sessions' | 'viewsPerSecond'>, Omit<Machines, 'partitions'> {
  sessions?: number
  viewsPerSecond?: number
  partitions?: number
  results: string
  json?: boolean
  markdown?: boolean
  check?: number[]
  quick?: boolean
}

const count = quantity(1)
const amount = quantity(0)

/** `npm run capacity`: computes the machines for given numbers of sessions and views from published results. */
export function capacityCommand(invocation: Invocation): Command {
  const command = new Command('capacity')
    .description('compute API processes, Redis nodes and memory from load/results')
    .optionsGroup('Sessions and views:')
    .option('--sessions <n>', 'concurrent sessions (default: a table of several sizes)', count)
    .option(
      '--views-per-second <n>',
      `page views per second (default: one per session in ${SECONDS_PER_VIEW} s)`,
      amount,
    )
    .option('--items <n>', 'number of different items', count, defaults.items)
    .option(
      '--items-per-session <n>',
      'items viewed by each session',
      amount,
      defaults.itemsPerSession,
    )
    .option('--data-bytes <n>', 'data of each session in bytes', amount, defaults.dataBytes)
    .optionsGroup('Machines:')
    .option(
      '--cores-per-node <n>',
      'cores of a Redis node',
      wholeNumber(1, 1_024),
      machineDefaults.coresPerNode,
    )
    .addOption(
      nodeOption('--node-memory <bytes>', 'memory of a Redis node', {
        unit: 'B',
        value: machineDefaults.nodeMemory,
      }),
    )
    .addOption(
      nodeOption('--node-network <bits>', 'network bandwidth of a Redis node', {
        unit: 'b/s',
        value: machineDefaults.nodeNetwork,
      }),
    )
    .option(
      '--replicas <n>',
      'replicas of each primary',
      wholeNumber(0, 10),
      machineDefaults.replicas,
    )
    .option(
      '--partitions <n>',
      'number of partitions (default: the recommended number)',
      wholeNumber(1, 16_384),
    )
    .option(
      '--max-stall-ms <n>',
      'the longest time that the move of a slot may block a node',
      wholeNumber(1, 1e6),
      machineDefaults.maxStallMs,
    )
    .optionsGroup('Output:')
    .option('--json', 'print JSON')
    .addOption(new Option('--markdown', 'print Markdown').conflicts('json'))
    .option('--results <folder>', 'the folder with the measurements', published)
    .optionsGroup('Check:')
    .addOption(
      new Option('--check [sessions]', 'measure again, and compare with the predictions')
        .argParser(list(count))
        .preset('1M,5M')
        .conflicts(['sessions', 'viewsPerSecond', 'json'])
        .conflicts([...Object.keys(defaults), ...Object.keys(machineDefaults)]),
    )
    .option('--quick', 'with --check: a short measurement')
  return command
    .addHelpText(
      'after',
      `
Numbers may have a decimal suffix: 10k, 1.5M, 2G or 2B, 1T. docs/scaling.md describes the model and its limits.

--check fills a Redis with 1 and 5 million sessions and records views on clusters of 1 to 3 nodes. It takes about
ten minutes and 6 GB of memory. It starts the Redis servers that it needs, and stops them at the end.

Examples:
  npm run capacity                                                # 1 thousand to 1 billion sessions
  npm run capacity -- --sessions 100M --views-per-second 2M
  npm run capacity -- --sessions 20M --data-bytes 500 --node-memory 64GB --replicas 2
  npm run capacity -- --check 1M`,
    )
    .action(async () => {
      const flags = command.opts<Flags>()
      if (flags.quick && !flags.check) throw new Problem('--quick needs --check.')
      const known = await readMeasurements(flags.results, flags.coresPerNode)
      if (flags.check) return await check(known, flags, invocation)
      show(known, flags)
    })
}

const nodeOption = (
  flags: string,
  description: string,
  { unit, value }: { unit: string; value: number },
) =>
  new Option(flags, description)
    .argParser(quantity(1_000, unit))
    .default(value, `${value / 1e9}G${unit}`)

function show(known: Known, flags: Flags): void {
  const { sessions, viewsPerSecond, items, itemsPerSession, dataBytes } = flags
  const data = { items, itemsPerSession, dataBytes }
  const machines: Machines = { ...flags, partitions: flags.partitions ?? null }
  if (sessions === undefined && viewsPerSecond !== undefined) {
    throw new Problem('--views-per-second needs --sessions.')
  }
  const planned = (count: number): Planned => {
    const rate = viewsPerSecond ?? count / SECONDS_PER_VIEW
    const size = { ...data, sessions: count, viewsPerSecond: rate }
    return { size, plan: planFor(size, machines, known.measured) }
  }
  const plans =
    sessions === undefined ? documentedPlans(known, machines, data) : [planned(sessions)]
  const notes = extrapolations(plans, machines, known)
  if (flags.json) {
    print(
      JSON.stringify(
        { plans, machines: machinesOf(machines), inputs: known.inputs, notes },
        null,
        2,
      ),
    )
    return
  }
  const [only] = plans
  const table = only && sessions !== undefined ? needsOf(only) : needsOfAll(plans)
  printTables([table, inputTable(known)], notes, flags)
}

const machinesOf = ({ coresPerNode, nodeMemory, nodeNetwork, replicas, maxStallMs }: Machines) => ({
  ...{ coresPerNode, nodeMemory, nodeNetwork, replicas, maxStallMs },
})

/** Measures memory and clusters again, and prints the results beside the predictions. */
async function check(known: Known, flags: Flags, invocation: Invocation): Promise<void> {
  const sessions = flags.check ?? []
  const measured = await measure(memory, { large: sessions }, flags, invocation)
  print()
  const views = await measure(cluster, {}, flags, invocation)
  print()
  const tables = [memoryCheck(known, measured), cpuCheck(known, views)]
  printTables(tables, accuracyOf(known, views), flags)
}

async function measure<Options extends object, Bench>(
  experiment: Experiment<Options, Bench>,
  change: Partial<Options>,
  { quick = false }: Flags,
  invocation: Invocation,
): Promise<Rows> {
  const command = experimentCommand(experiment as Experiment, invocation)
  if (quick) command.setOptionValue('quick', true)
  const options = { ...optionsOf(experiment as Experiment, command), ...change }
  const { commandLine, interrupt } = invocation
  const plan = { options, commandLine, interrupt, comparedWith: null }
  const { result, error } = await runExperiment(experiment as Experiment, plan)
  if (error !== null) throw error
  return Rows.of(experiment, result.samples)
}

function printTables(
  tables: readonly Table[],
  notes: readonly string[],
  { markdown }: Flags,
): void {
  const texts = markdown
    ? tables.map((table) => `${plain(table.caption)}:\n\n${tableMarkdown(table)}`)
    : tables.map(tableText)
  const list = notes.map((note) => `- ${markdown ? plain(note) : note}`)
  print([...texts, ...(list.length > 0 ? [list.join('\n')] : [])].join('\n\n'))
}
