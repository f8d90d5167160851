import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { isIsolated } from '../../drivers/redis/generator/program.ts'
import { namesOption } from '../../drivers/redis/options.ts'
import type { Experiment } from '../../experiment/experiment.ts'
import { figure, percent } from '../../experiment/figures.ts'
import type { Row } from '../../experiment/rows.ts'
import { asCount, asCpu } from '../../experiment/shape.ts'
import { type Column, tableOf } from '../../reporting/columns.ts'
import { addOtherAddress, HOW_TO_RUN } from './network.ts'
import { type Client, EXHAUSTED, type PortsOptions, runClient } from './run.ts'

interface Bench {
  /** Whether the namespace has an address that is not one of loopback. */
  otherAddress: boolean
}

const closes = { strategy: 'closes-itself', reuse: 0 } as const
const atOtherAddress = { ...closes, otherAddress: true } as const

const clients: Readonly<Record<string, Client>> = {
  'no-reuse': { ...closes, label: 'client closes' },
  // Early, so that no connection of another case leaves TIME_WAIT meanwhile and makes room.
  'few-waiting': { ...closes, label: 'client closes, a tenth may wait', mayWait: 0.1 },
  'more-ports': { ...closes, label: 'client closes, more ports', portsFactor: 2 },
  loopback: { ...closes, label: 'client closes, kernel default', reuse: 2 },
  'not-loopback': {
    ...atOtherAddress,
    label: 'client closes, kernel default, other address',
    reuse: 2,
  },
  reuse: { ...atOtherAddress, label: 'client closes, reuse on, other address', reuse: 1 },
  quit: { strategy: 'naive', label: 'naive: QUIT, Redis closes', reuse: 0 },
  pool: { strategy: 'pipeline', label: 'pipeline: one connection', reuse: 0 },
}

const names = Object.keys(clients)
const labelOf = (name: string | number) => clients[name]?.label ?? String(name)

/** What a connection for each request does to a machine. */
export const ports: Experiment<PortsOptions, Bench> = {
  name: 'ports',
  title: 'Running out of ports',
  summary: 'run out of ports: what a connection for each request does to a machine',
  group: 'Redis',
  about: `
Records views at a steady rate with a connection each, in a network namespace with few ports, and measures
when connecting first fails with ${EXHAUSTED} ("Cannot assign requested address"), how often it fails, and how
many ports are in TIME_WAIT. The cases differ in what decides it: which side closes the connection, the
number of ports (net.ipv4.ip_local_port_range), tcp_tw_reuse, tcp_max_tw_buckets, and whether the address of
Redis is one of loopback.

It needs the right to make a network namespace and to change its settings: run it as root or, where the
system allows that, as "unshare -r npm run load -- ports", and outside of containers. Nothing outside of the
namespace is touched.

Examples:
  npm run load -- ports
  npm run load -- ports --quick --cases no-reuse,pool
  npm run load -- ports --ports 20000 --rate 3000 --duration 15 --cases no-reuse`,
  rounds: 1,
  duration: 5,
  quick: { ports: 250, rate: 500, duration: 2, cases: ['no-reuse', 'loopback', 'quit', 'pool'] },
  seconds: { quick: null, usual: null, full: 45 },
  configure(command) {
    command
      .option('--ports <n>', 'ports that clients may have', wholeNumber(20, 20_000), 500)
      .option('--rate <n>', 'views asked for per second', wholeNumber(1, 10_000), 1_000)
      .addOption(namesOption('--cases <list>', names))
  },
  isolated: () => ['patched'],

  factors: [{ name: 'case', label: 'case', text: labelOf }],
  subject: 'case',
  metrics: [
    { name: 'ports', label: 'ports', format: 'whole' },
    { name: 'reuse', label: 'tcp_tw_reuse', format: 'whole' },
    { name: 'refused', label: EXHAUSTED, format: 'percent', ...asCount, least: 0.01 },
    { name: 'lasted', label: 'first failure after s' },
    { name: 'viewsBefore', label: 'views before', format: 'whole' },
    { name: 'rateBefore', label: 'views/s before it' },
    { name: 'rateAfter', label: 'views/s after it' },
    { name: 'mostWaiting', label: 'most ports in TIME_WAIT', format: 'whole' },
    { name: 'waitingAtServer', label: 'on the side of Redis', format: 'whole' },
    { name: 'redisCpuMicros', label: 'Redis CPU µs /view', ...asCpu },
    { name: 'views', label: 'views', format: 'whole' },
  ],
  progress: ['views'],
  loadOptions: ['ports', 'rate'],

  async prepare(_, { cases }) {
    if (!isIsolated()) {
      throw new Problem(
        `This needs a network namespace of its own, which this system does not allow. ${HOW_TO_RUN}`,
      )
    }
    const isWanted = cases.some((name) => clients[name]?.otherAddress)
    return { otherAddress: isWanted && (await addOtherAddress()) }
  },

  cases: ({ otherAddress }, { cases }) =>
    names
      .filter((name) => cases.includes(name) && (otherAddress || !clients[name]?.otherAddress))
      .map((name) => ({ case: name })),

  async measure({ case: name = '' }, _, run) {
    const client = clients[name]
    if (!client) throw new RangeError(`there is no case ${name}`)
    return await runClient(client, run)
  },

  sections: (rows, { options }) => [
    {
      title: 'When ports run out',
      paragraphs: [
        `A connection that the client closes keeps its port for 60 s (TIME_WAIT). When all ports of the range wait, connecting fails with ${EXHAUSTED}: the documents' "Cannot assign requested address". 471 connections a second use up the default range of 28,232 ports in a minute.`,
        'With tcp_tw_reuse a new connection may take over a port that has waited for a second (1: to all addresses; 2, the default: on loopback only; 0: never). Connections beyond tcp_max_tw_buckets are forgotten at once. After QUIT, Redis closes first, and only its side waits.',
      ],
      tables: [
        tableOf(rows, {
          caption: `${figure(Number(options.rate))} views/s asked for`,
          columns: [
            ...['ports', 'reuse'],
            refused,
            ...['lasted', 'rateBefore', 'rateAfter'],
            ...['mostWaiting', 'waitingAtServer', 'redisCpuMicros'],
          ],
        }),
        tableOf(rows, {
          caption: "Clients' ports in TIME_WAIT after",
          columns: [0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60]
            .filter((second) => second <= Number(options.duration))
            .map((second) => ({ head: `${second} s`, cell: (row) => waitingAt(row, second) })),
        }),
      ],
    },
  ],

  claims(rows, { options }) {
    const [own, quit, pool] = ['no-reuse', 'quit', 'pool'].map((name) => rows.find({ case: name }))
    const lasted = own?.median('lasted')
    const [naiveCpu, poolCpu] = [quit, pool].map((row) => row?.median('redisCpuMicros'))
    const left = (options.cases as string[]).length - rows.all.length
    return [
      own &&
        lasted &&
        `Where the client closes its connections, ${own.median('ports')?.toLocaleString('en-US')} ports lasted ${figure(lasted)} s, for ${own.median('viewsBefore')?.toLocaleString('en-US')} views.`,
      pool?.median('refused') === 0 && 'With a pool, ports do not run out.',
      naiveCpu &&
        poolCpu &&
        `Redis used ${figure(naiveCpu)} µs of CPU for a naive view and ${figure(poolCpu)} µs for a pooled one: ${figure(naiveCpu / poolCpu)} times as much, for accepting, greeting and closing.`,
      left > 0 && `Left out: ${left} cases, which need the program ip (iproute2).`,
    ]
  },
}

const refused: Column = {
  head: EXHAUSTED,
  cell(row) {
    const share = row.median('refused')
    return share === 0 ? 'never' : percent(share ?? Number.NaN)
  },
}

/** How many ports wait after some seconds of the first round. */
function waitingAt({ samples }: Row, second: number): string {
  const { seconds = [], waiting = [] } = samples[0]?.series ?? {}
  return waiting[seconds.findIndex((at) => at >= second)]?.toLocaleString('en-US') ?? '-'
}
