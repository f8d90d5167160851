import { listOf, seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Command, Option } from 'commander'
import { isIsolated } from '../drivers/redis/generator/program.ts'
import type { Experiment } from '../redis/experiment.ts'
import { cases } from './cases.ts'
import { addOtherAddress } from './network.ts'
import { caseTable, conclusionsOf, timelineTable } from './report.ts'
import { type CaseRun, EXHAUSTED, type PortsOptions, runCase } from './run-case.ts'

interface Options extends PortsOptions {
  cases: string[]
}

const names = cases.map(({ name }) => name)

/** What a connection for each request does to a machine. */
export const portsExperiment: Experiment<Options> = {
  name: 'ports',
  summary: 'run out of ports: what a connection for each request does to a machine',
  about: `
It records views at a steady rate by a connection each, in a network namespace of its own with few
ports, and tells when connecting fails with EADDRNOTAVAIL ("Cannot assign requested address"), how often,
and how many ports wait in TIME_WAIT meanwhile. The cases differ in what decides whether it happens at
all: who closes the connection, the number of ports (net.ipv4.ip_local_port_range), tcp_tw_reuse,
tcp_max_tw_buckets, and whether the address is one of loopback.

It needs the right to make a network namespace and to change its settings: root, or where the system
allows it "unshare -r npm run load -- ports", and not in an ordinary container. Nothing outside of the namespace is touched, and it goes away with the command.

Examples:
  npm run load -- ports
  npm run load -- ports --quick --cases no-reuse,pool
  npm run load -- ports --ports 20000 --rate 3000 --duration 15 --cases no-reuse`,

  configure(command: Command) {
    command
      .option('--ports <n>', 'ports that clients may have', wholeNumber(20, 20_000), 500)
      .option('--rate <n>', 'views asked for per second', wholeNumber(1, 10_000), 1_000)
      .option('--duration <seconds>', 'length of each case', seconds(0.1, 300), 5)
      .addOption(
        new Option('--cases <list>', `out of ${names.join(', ')}`)
          .argParser(listOf(names))
          .default([...names], 'all'),
      )
  },
  isolated: () => ['patched'],
  quick: { ports: 250, rate: 500, duration: 2, cases: ['no-reuse', 'loopback', 'quit', 'pool'] },

  async run(context, options) {
    if (!isIsolated()) {
      throw new Problem(
        'This needs a network namespace of its own, which this system does not allow. Run it as root, or as "unshare -r npm run load -- ports", and outside of a container.',
      )
    }
    const chosen = cases.filter(({ name }) => options.cases.includes(name))
    const other = chosen.some(({ otherAddress }) => otherAddress) && (await addOtherAddress())
    const runs: CaseRun[] = []
    for (const each of chosen.filter(({ otherAddress }) => other || !otherAddress)) {
      context.progress.begin(each.description)
      const run = await runCase(context, options, each)
      runs.push(run)
      context.progress.end(`${run.ok} views, ${run.errors[EXHAUSTED] ?? 0} without a port`)
    }
    const without = chosen.length - runs.length
    return {
      tables: [caseTable(runs, options.rate), timelineTable(runs, options.duration)],
      conclusions: [
        ...conclusionsOf(runs),
        ...(without > 0
          ? [`Left out: ${without} cases, which need the program ip (iproute2).`]
          : []),
      ],
      documents: [],
      data: { samples: runs },
    }
  },
}
