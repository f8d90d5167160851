import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { HOW_TO_RUN, ip, requireOwnNetwork } from '../../drivers/redis/generator/peer-network.ts'
import { namesOption } from '../../drivers/redis/options.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { asCost } from '../../experiment/shape.ts'
import { OTHER_ADDRESS } from './network.ts'
import { type Client, EXHAUSTED, type PortsOptions, runClient } from './run.ts'

const closes = { strategy: 'closes-itself', reuse: 0 } as const
const atOther = { ...closes, otherAddress: true } as const

const clients: Readonly<Record<string, Client>> = {
  'no-reuse': { ...closes, label: 'client closes' },
  // An early case, so that no connection of other cases leaves TIME_WAIT during it and frees a port.
  'few-waiting': { ...closes, label: 'client closes, a tenth may wait', mayWait: 0.1 },
  'more-ports': { ...closes, label: 'client closes, more ports', portsFactor: 2 },
  loopback: { ...closes, label: 'client closes, kernel default', reuse: 2 },
  'not-loopback': { ...atOther, label: 'client closes, kernel default, other address', reuse: 2 },
  reuse: { ...atOther, label: 'client closes, reuse on, other address', reuse: 1 },
  quit: { strategy: 'naive', label: 'naive: QUIT, Redis closes', reuse: 0 },
  pool: { strategy: 'pipeline', label: 'pipeline: one connection', reuse: 0 },
}

const names = Object.keys(clients)
const labelOf = (name: string | number) => clients[name]?.label ?? String(name)

/** Exhausts the ports of a client that opens a connection for each request. */
export const ports: Experiment<PortsOptions> = {
  name: 'ports',
  title: 'Running out of ports',
  summary: 'exhaust the ports of clients that open a connection for each request',
  about: `
Records views at a constant rate, each with a new connection, in a network namespace with few ports. Measures when
connecting first fails with ${EXHAUSTED} ("Cannot assign requested address"). The cases differ in the side that
closes the connection, the number of ports (net.ipv4.ip_local_port_range), tcp_tw_reuse, tcp_max_tw_buckets, and
whether the address of Redis is a loopback address.

The command needs permission to create a network namespace and to change its settings.
${HOW_TO_RUN}

Examples:
  npm run load -- ports --ports 20000 --rate 3000 --duration 15 --cases no-reuse`,
  rounds: 1,
  duration: 5,
  quick: { ports: 250, rate: 500, duration: 2, cases: ['no-reuse', 'loopback', 'quit', 'pool'] },
  configure(command) {
    command
      .option('--ports <n>', 'ports for clients', wholeNumber(20, 20_000), 500)
      .option('--rate <n>', 'views per second', wholeNumber(1, 10_000), 1_000)
      .addOption(namesOption('--cases <list>', names))
  },
  isolated: () => ['patched'],

  factors: [{ name: 'case', text: labelOf }],
  subject: 'case',
  metrics: [
    { name: 'ports', label: 'ports', format: 'whole' },
    { name: 'reuse', label: 'tcp_tw_reuse', format: 'whole' },
    { name: 'refused', label: EXHAUSTED, format: 'percent', ...asCost },
    { name: 'lasted', label: 'first failure after s' },
    { name: 'rateBefore', label: 'views/s before it' },
    { name: 'rateAfter', label: 'views/s after it' },
    { name: 'mostWaiting', label: 'most ports in TIME_WAIT', format: 'whole' },
    { name: 'waitingAtServer', label: 'on the side of Redis', format: 'whole' },
    { name: 'redisCpuMicros', label: 'Redis CPU µs /view', ...asCost },
    { name: 'views', label: 'views', format: 'whole' },
  ],
  progress: ['views'],

  async prepare(_, { cases }) {
    requireOwnNetwork('This experiment')
    const needsOther = cases.some((name) => clients[name]?.otherAddress)
    if (needsOther) await ip(`address add ${OTHER_ADDRESS}/32 dev lo`)
  },

  cases: (_, { cases }) =>
    names.filter((name) => cases.includes(name)).map((name) => ({ case: name })),

  measure: (one, _, run) => runClient(clients[String(one.case)] as Client, run),

  sections: (_, { options }) => [
    {
      title: 'When ports run out',
      caption: `Target rate: ${figure(Number(options.rate))} views/s`,
      columns: [
        'ports',
        'reuse',
        'refused',
        'lasted',
        'rateBefore',
        'rateAfter',
        'mostWaiting',
        'waitingAtServer',
        'redisCpuMicros',
      ],
    },
  ],
}
