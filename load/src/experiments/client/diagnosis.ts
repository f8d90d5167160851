import { figure, percent } from '../../experiment/figures.ts'
import type { Rows } from '../../experiment/rows.ts'
import type { Table } from '../../experiment/section.ts'
import type { watchOthers } from './target.ts'

// Shares of what redis-benchmark -c 1 reaches, as in the documents.
const EXPECTED = [0.5, 0.6] as const
const RECONNECTS = [0.25, 0.3] as const

/** What was measured against the server, in commands per second of one client. */
export interface Yardstick {
  /** What redis-benchmark -c 1 does, or a plain socket where it cannot be used. */
  reference: number
  /** A client that keeps its connection and waits for each reply. */
  keeps: number
  /** A client that opens a connection for each command and says nothing but that. */
  reconnects: number
  /** The same with all that ioredis says on a new connection. */
  reconnectsWithGreeting: number
}

/** What a rate of the user's is read by; null when one of the clients that it takes did not work. */
export function yardstickOf(rows: Rows): Yardstick | null {
  const base = rows.find({ client: 'ioredis' })?.baseline(rows)
  const reference = base?.median('perSecond')
  // By the ratios, for each of them compares two runs of the same round.
  const [keeps, reconnects, reconnectsWithGreeting] = [
    'ioredis',
    'reconnect',
    'reconnect-ioredis',
  ].map((client) => {
    const ratio = rows.find({ client })?.ratio('perSecond', base)
    return ratio && reference ? ratio.median * reference : undefined
  })
  if (!reference || !keeps || !reconnects || !reconnectsWithGreeting) return null
  return { reference, keeps, reconnects, reconnectsWithGreeting }
}

type Verdict = keyof typeof advice

/** How many times as fast as ours a client of the user's may be by chance. */
const TOLERANCE = 1.15

/**
 * What the rate of a client with one connection says about it.
 *
 * The documents' shares are those of a Python client. What a new connection costs depends on the
 * machine and on the way to the server, so it was measured, too: by a client that does nothing else. No
 * client that opens a connection for each command is faster, so one that is keeps its connection.
 */
export function verdictOf(rate: number, yardstick: Yardstick): Verdict {
  const { reference, keeps, reconnects, reconnectsWithGreeting } = yardstick
  const share = rate / reference
  if (rate > 1.5 * Math.max(reference, keeps)) return 'more than one at a time'
  if (rate > TOLERANCE * reconnects) return share >= EXPECTED[0] ? 'as expected' : 'slow'
  if (share > RECONNECTS[1]) return 'unclear'
  return rate >= reconnectsWithGreeting / 2 ? 'reconnects' : 'slower still'
}

const advice = {
  'more than one at a time':
    'A client that waits for each reply on one connection cannot do as many: it pipelines, or has several connections. Nothing to repair.',
  'as expected':
    'It keeps its connection and waits for each reply, which is normal. Where no command needs the reply to another, send several at once (a pipeline, MGET).',
  slow: 'It keeps its connection: a client that opens one for each command is slower here. What slows it down is its own work: reading replies, other work of its process, or a connection for each group of commands.',
  unclear:
    'It may open a connection for each command, or keep it and be slow by itself. Watch the new connections (total_connections_received in INFO, or --watch) while it runs.',
  reconnects:
    'It opens a connection for each command or group of commands. Keep one, or a pool, for the life of the process.',
  'slower still':
    'A client that opens a connection for each command does more. Look for several round trips per command (AUTH, SELECT, INFO on connecting, TLS), a lookup of names, or a process without CPU time.',
}

/** The advice about the user's own rate. */
export function describeOwn(rate: number, yardstick: Yardstick): string {
  const share = percent(rate / yardstick.reference)
  return `Your client's ${figure(rate)} commands/s are ${share} of the reference. ${advice[verdictOf(rate, yardstick)]}`
}

/** How to read the rate of one client. */
export function readingTable(yardstick: Yardstick): Table {
  const { reference, keeps, reconnects, reconnectsWithGreeting } = yardstick
  const share = (rate: number) => percent(rate / reference)
  const documents = ([low, high]: readonly [number, number]) => `${low * 100}-${high * 100} %`
  return {
    caption: 'How to read the rate of one client here',
    head: ['what it means', 'in the documents', 'here', 'commands/s'],
    rows: [
      [
        'a connection that is kept, no pipelining: normal',
        documents(EXPECTED),
        share(keeps),
        figure(keeps),
      ],
      [
        'a connection for each command',
        documents(RECONNECTS),
        `${share(reconnectsWithGreeting)} to ${share(reconnects)}`,
        `${figure(reconnectsWithGreeting)} to ${figure(reconnects)}`,
      ],
    ],
    texts: [0],
  }
}

/** From this many commands per connection on, no client connects for each group of them. */
const FEW_COMMANDS = 50
/** Fewer connections may be anything: a cron job, a health check. */
const MANY_CONNECTIONS = 10

/** What the counters say of the server's other clients; null where they could not be read. */
export function describeOthers(others: Awaited<ReturnType<typeof watchOthers>>): string {
  if (!others) return 'unknown, since this user may not call INFO.'
  const { seconds, commands, connections } = others
  const counts = `${figure(commands / seconds)} commands/s and ${figure(connections / seconds)} new connections/s in ${figure(seconds)} s.`
  if (commands + connections < MANY_CONNECTIONS) return `${counts} Too few to tell anything.`
  if (connections < MANY_CONNECTIONS) return `${counts} They keep their connections.`
  const each = commands / connections
  if (each >= FEW_COMMANDS) return `${counts} Few of them connect anew.`
  return `${counts} That is a connection for every ${figure(each)} commands: some client opens one for each command or group of commands. It should keep one, or a pool.`
}

/** Whether the system had no port left for another connection. */
export function isOutOfPorts(error: unknown): boolean {
  // Node's words for it, and those of other programs.
  return /EADDRNOTAVAIL|Cannot assign requested address/.test(String(error))
}
