import { FEW_PER_TRIP, type Figures, NODE_RATES } from './figures.ts'
import { type Check, megabytes, names, perSecond, severityOf } from './finding.ts'
import type { CommandStats } from './info.ts'
import { commandName, counted, figure, percent } from './text.ts'

// Checks of clients. Fewer events than these limits have harmless causes: a deployment, a cron job, a health check.
const MIN_CONNECTIONS = 10
const MIN_CONNECTIONS_PER_SECOND = 2
const MIN_COMMANDS = 100
/** The smallest share of the main thread's work that makes a finding. */
const MIN_SAVING = 0.01
/** The smallest share of all commands that makes a finding. */
const MIN_SHARE = 0.05

/** A closed connection holds its port for a minute, and Linux has 28,232 ports for clients (docs/measurements/redis-experiments.md). */
const PORTS_PER_SECOND = 470

/** Commands that clients send by themselves, with their largest number on a new connection. */
const HANDSHAKE: Readonly<Record<string, number>> = {
  hello: 1,
  auth: 1,
  select: 1,
  info: 1,
  ping: 1,
  quit: 1,
  command: 1,
  client: 4,
  'client|setinfo': 2,
  'client|setname': 1,
  'client|id': 1,
  'client|tracking': 1,
  'command|docs': 1,
  'cluster|slots': 1,
  'cluster|shards': 1,
  readonly: 1,
}

const none: CommandStats = { calls: 0, micros: 0 }
const add = (a: CommandStats, b: CommandStats): CommandStats => ({
  calls: a.calls + b.calls,
  micros: a.micros + b.micros,
})

/**
 * The commands in `HANDSHAKE`: `handshake` has those of short connections, `others` by name those that no new connection
 * explains.
 */
function chatterOf({ commandStats, connectionsOpened, connectionsNotKept }: Figures) {
  let handshake = none
  const others = new Map<string, CommandStats>()
  for (const [name, most] of Object.entries(HANDSHAKE)) {
    const { calls, micros } = commandStats.get(name) ?? none
    const each = calls > 0 ? micros / calls : 0
    const ofShort = Math.min(calls, most * connectionsNotKept)
    handshake = add(handshake, { calls: ofShort, micros: ofShort * each })
    const more = calls - most * connectionsOpened
    if (more > 0) others.set(name, { calls: more, micros: more * each })
  }
  return { handshake, others }
}

const connectionChurn: Check = ({ figures, costs, clients }) => {
  const { connectionsNotKept, commands, lifetimeSeconds, seconds } = figures
  const rate = connectionsNotKept / seconds
  // After QUIT, Redis closes the connection, and the client's port is free at once.
  const quits = figures.commandStats.get('quit')?.calls ?? 0
  const closedByClients = (connectionsNotKept - quits) / seconds
  const { handshake } = chatterOf(figures)
  // At least one round trip per connection, even if other clients use pipelines.
  const trips = Math.min(
    handshake.calls,
    Math.max(connectionsNotKept, costs.tripsOf(handshake.calls)),
  )
  const saving = costs.shareOf({ connections: connectionsNotKept, trips, micros: handshake.micros })
  if (connectionsNotKept < MIN_CONNECTIONS || rate < MIN_CONNECTIONS_PER_SECOND) return null
  if (saving < MIN_SAVING) return null
  const lifetime =
    lifetimeSeconds === null ? '' : `, open for ${figure(lifetimeSeconds * 1_000)} ms on average`
  const ports = `One address runs out of ports beyond ${PORTS_PER_SECOND} connections/s ("Cannot assign requested address").`
  return {
    id: 'connection-churn',
    severity: severityOf(saving, costs),
    title: 'Clients open connections and close them again instead of keeping them.',
    saving,
    saves: `${percent(saving)} of the main thread's work: ${perSecond(connectionsNotKept, figures)} connections and ${perSecond(handshake.calls, figures)} commands on connecting`,
    evidence: [
      `${counted(connectionsNotKept, 'connection')} opened and closed in ${figure(seconds)} s${lifetime}; one for every ${figure(commands / connectionsNotKept)} commands.`,
      ...(closedByClients > PORTS_PER_SECOND ? [ports] : []),
      ...names(clients, ({ short }) => [short, `${counted(short, 'short connection')} seen`]),
    ],
    articles: `Redis in Action: 25-30 % of the possible rate (Node: ${NODE_RATES.opened.join('-')} %).`,
    remedy:
      'Create one client or connection pool at the start of the process, and share it between requests. If there is a pool, increase its size: some clients open short connections when the pool is exhausted.',
  }
}

const singleTrips: Check = ({ figures, costs, clients }) => {
  const { commands, commandsPerTrip, trips } = figures
  if (commandsPerTrip === null || commandsPerTrip >= FEW_PER_TRIP) return null
  if (commands < MIN_COMMANDS) return null
  const { handshake } = chatterOf(figures)
  const own = trips - costs.tripsOf(handshake.calls)
  if (own < MIN_COMMANDS / 2) return null
  const saving = costs.shareOf({ trips: 0.8 * own })
  return {
    id: 'one-command-per-trip',
    severity: severityOf(saving, costs),
    title: `Clients send ${figure(commandsPerTrip)} commands per round trip: they wait for each reply before they send the next command.`,
    saving,
    saves: `with five commands per round trip: up to ${percent(saving)} of the main thread's work, and four of five network waits`,
    evidence: [
      `${perSecond(commands, figures)} commands arrived in ${perSecond(trips, figures)} reads.`,
      ...names(clients, ({ active, connections, commands: sent, lastCommands }) => [
        sent ?? active * connections,
        withCommands(
          sent === null ? `active in ${percent(active)} of its samples` : counted(sent, 'command'),
          lastCommands,
        ),
      ]),
    ],
    articles: 'Redis in Action: one trip instead of five: 1.7 to 5 times the calls.',
    remedy:
      "Send commands together that do not depend on each other's replies: in a pipeline, or as one variadic command (MGET, HSET with several fields). Commands of different requests can share a pipeline, too: batch them by turn of the event loop (auto-pipelining).",
  }
}

const chatter: Check = ({ figures, costs, clients }) => {
  const { others } = chatterOf(figures)
  const { calls, micros } = [...others.values()].reduce(add, none)
  if (calls < MIN_COMMANDS / 2 || calls < MIN_SHARE * figures.commands) return null
  const saving = costs.shareOf({ trips: costs.tripsOf(calls), micros })
  const list = [...others]
    .toSorted(([, a], [, b]) => b.calls - a.calls)
    .map(([name, one]) => `${commandName(name)} ${perSecond(one.calls, figures)}`)
  return {
    id: 'chatter',
    severity: severityOf(saving, costs),
    title: `${percent(calls / figures.commands)} of the commands do no work for the application.`,
    saving,
    saves: `up to ${percent(saving)} of the main thread's work`,
    evidence: [
      `${list.slice(0, 5).join(', ')}.`,
      ...names(clients, ({ active, connections, lastCommands }) => {
        const sent = lastCommands.filter((name) => others.has(name))
        return [sent.length > 0 ? active * connections : 0, sent.map(commandName).join(', ')]
      }),
    ],
    articles: 'Tencent Cloud: INFO in a loop takes 20 to 80 % of a core.',
    remedy:
      'Send INFO from one monitor only, at most every few seconds. Turn off checks before each command (PING, test on borrow) and ready checks that send INFO. Send HELLO, AUTH and SELECT only once, when a long-lived connection opens.',
  }
}

/** Smaller output buffers are normal. */
const LONG_OUTPUT_BYTES = 2 ** 20

const slowReaders: Check = ({ clients, info }) => {
  const slow = (clients ?? []).filter(({ outputBytes }) => outputBytes >= LONG_OUTPUT_BYTES)
  const most = Math.max(0, ...slow.map(({ outputBytes }) => outputBytes))
  const closed = Number(info.get('client_output_buffer_limit_disconnections') ?? 0)
  if (slow.length === 0) return null
  const limit = Number(info.get('maxmemory')) || Number(info.get('total_system_memory'))
  const share = most / Math.max(1, limit)
  const severity = share >= 0.1 ? 'high' : share >= 0.01 || most >= 2 ** 26 ? 'medium' : 'low'
  return {
    id: 'slow-readers',
    severity,
    title: `Clients do not read their replies in time, so the replies wait in the server's memory.`,
    saving: null,
    saves: `${megabytes(most)} of memory for one connection (${percent(share)} of maxmemory, or else of the system's memory)`,
    evidence: [
      ...names(slow, ({ outputBytes, lastCommands }) => [
        outputBytes,
        withCommands(`${megabytes(outputBytes)} of unread replies`, lastCommands),
      ]),
      ...(closed > 0
        ? [`Redis has closed ${counted(closed, 'client')} for this reason since its start.`]
        : []),
    ],
    articles: 'Tencent Cloud: memory rises while replies to pipelines are not read.',
    remedy:
      'Read replies as they arrive, and send at most a few hundred commands in a pipeline. To limit the memory, set client-output-buffer-limit normal or maxmemory-clients.',
  }
}

export const clientChecks: readonly Check[] = [connectionChurn, singleTrips, chatter, slowReaders]

/** CLIENT LIST names no command of a connection that has sent none. */
const withCommands = (text: string, commands: readonly string[]) =>
  [text, ...(commands.length > 0 ? [`last commands ${commands.slice(0, 3).join(', ')}`] : [])].join(
    ', ',
  )
