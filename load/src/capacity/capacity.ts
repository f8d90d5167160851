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
import { type Machines, planFor, type Size } from './model.ts'
import {
  cpuCheck,
  defaults,
  documentedPlans,
  extrapolations,
  inputTable,
  machineDefaults,
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

/** `npm run capacity`: what sessions and views need, computed from what was measured. */
export function capacityCommand(invocation: Invocation): Command {
  const command = new Command('capacity')
    .description('compute API processes, Redis nodes and memory from load/results')
    .optionsGroup('What there is:')
    .option('--sessions <n>', 'at the same time (default: a table of several sizes)', count)
    .option(
      '--views-per-second <n>',
      `(default: each session one in ${SECONDS_PER_VIEW} s)`,
      amount,
    )
    .option('--items <n>', 'different items', count, defaults.items)
    .option('--items-per-session <n>', 'viewed by each session', amount, defaults.itemsPerSession)
    .option('--data-bytes <n>', 'data of each session', amount, defaults.dataBytes)
    .optionsGroup('What it runs on:')
    .option(
      '--cores-per-node <n>',
      'of a Redis node',
      wholeNumber(1, 1_024),
      machineDefaults.coresPerNode,
    )
    .addOption(ofNode('--node-memory <bytes>', 'B', machineDefaults.nodeMemory))
    .addOption(ofNode('--node-network <bits>', 'b/s', machineDefaults.nodeNetwork))
    .option('--replicas <n>', 'of each primary', wholeNumber(0, 10), machineDefaults.replicas)
    .option('--partitions <n>', '(default: as many as are advisable)', wholeNumber(1, 16_384))
    .option(
      '--max-stall-ms <n>',
      'that the move of a slot may block a node',
      wholeNumber(1, 1e6),
      machineDefaults.maxStallMs,
    )
    .optionsGroup('Output:')
    .option('--json', 'print JSON')
    .addOption(new Option('--markdown', 'print Markdown').conflicts('json'))
    .option('--results <folder>', 'the measurements', published)
    .optionsGroup('Check:')
    .addOption(
      new Option('--check [sessions]', 'measure, and print it beside what is predicted')
        .argParser(list(count))
        .preset('1M,5M')
        .conflicts(['sessions', 'json']),
    )
    .option('--quick', 'with --check: a first impression')
  return command
    .addHelpText(
      'after',
      `
Numbers may have a prefix: 10k, 1.5M, 2G or 2B, 1T. docs/scaling.md describes the model and its limits.

--check fills a Redis with 1 and 5 million sessions and records views on clusters of 1 to 3 nodes. It takes
about ten minutes, 6 GB of memory, and starts and removes what it needs.

Examples:
  npm run capacity                                                # 1 thousand to 1 billion sessions
  npm run capacity -- --sessions 100M --views-per-second 2M
  npm run capacity -- --sessions 20M --data-bytes 500 --node-memory 64GB --replicas 2
  npm run capacity -- --check 1M`,
    )
    .action(async () => {
      const flags = command.opts<Flags>()
      const known = await readMeasurements(flags.results)
      if (flags.check) return await check(known, flags, invocation)
      show(known, flags)
    })
}

const ofNode = (flags: string, unit: string, value: number) =>
  new Option(flags, 'of a Redis node')
    .argParser(quantity(1_000, unit))
    .default(value, `${value / 1e9}G${unit}`)

function show(known: Known, flags: Flags): void {
  const { sessions, viewsPerSecond, items, itemsPerSession, dataBytes } = flags
  const machines: Machines = { ...flags, partitions: flags.partitions ?? null }
  if (sessions === undefined && viewsPerSecond !== undefined) {
    throw new Problem('--views-per-second needs --sessions.')
  }
  const planned = (count: number): Planned => {
    const rate = viewsPerSecond ?? count / SECONDS_PER_VIEW
    const size = { sessions: count, viewsPerSecond: rate, items, itemsPerSession, dataBytes }
    return { size, plan: planFor(size, machines, known.measured) }
  }
  const plans = sessions === undefined ? documentedPlans(known, machines) : [planned(sessions)]
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

/** Measures large fillings and clusters anew. */
async function check(known: Known, flags: Flags, invocation: Invocation): Promise<void> {
  const sessions = flags.check ?? []
  const measured = await measure(memory, { large: sessions }, flags, invocation)
  print()
  const views = await measure(cluster, {}, flags, invocation)
  print()
  printTables([memoryCheck(known, measured), cpuCheck(known, views)], [], flags)
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
    ? [...tables.map((table) => `${plain(table.caption)}:\n\n${tableMarkdown(table)}`)]
    : tables.map(tableText)
  const list = notes.map((note) => `- ${markdown ? plain(note) : note}`)
  print([...texts, ...(list.length > 0 ? [list.join('\n')] : [])].join('\n\n'))
}
