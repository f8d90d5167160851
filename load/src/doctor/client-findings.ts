import { counted, figure, percent } from '../experiment/figures.ts'
import type { ClientGroup } from './census.ts'
import type { Figures } from './figures.ts'
import { type Check, type Finding, type Observation, severityOf } from './finding.ts'

// What clients do wrong. Fewer events than these may be anything: a deployment, a cron job, a health check.
const MIN_CONNECTIONS = 10
const MIN_COMMANDS = 100

/** From this many commands for each connection on, connections are kept long enough. */
const FEW_COMMANDS = 50

/** Commands that clients send by themselves, and how often at most on a new connection. */
const GREETING: Readonly<Record<string, number>> = {
  ...{ hello: 1, auth: 1, select: 1, info: 1, ping: 1, quit: 1, command: 1, client: 4 },
  ...{ 'client|setinfo': 2, 'client|setname': 1, 'client|id': 1, 'client|tracking': 1 },
  ...{ 'command|docs': 1, 'cluster|slots': 1, 'cluster|shards': 1, readonly: 1 },
}

const TRANSACTION = ['multi', 'exec', 'discard', 'watch', 'unwatch']

interface Work {
  calls: number
  micros: number
}

const noWork = { calls: 0, micros: 0 }
const add = (a: Work, b: Work) => ({ calls: a.calls + b.calls, micros: a.micros + b.micros })

/** The commands of `GREETING`: those that new connections explain, and the others by name. */
function chatterOf({ commandStats, connectionsNotKept }: Figures, hasChurn: boolean) {
  let greeting: Work = noWork
  const others = new Map<string, Work>()
  for (const [name, most] of Object.entries(GREETING)) {
    const { calls, micros } = commandStats.get(name) ?? noWork
    const explained = hasChurn ? Math.min(calls, most * connectionsNotKept) : 0
    const each = calls > 0 ? micros / calls : 0
    greeting = add(greeting, { calls: explained, micros: explained * each })
    if (calls > explained) {
      others.set(name, { calls: calls - explained, micros: (calls - explained) * each })
    }
  }
  return { greeting, others }
}

function hasChurn({ commands, connectionsNotKept }: Figures): boolean {
  return connectionsNotKept >= MIN_CONNECTIONS && commands / connectionsNotKept < FEW_COMMANDS
}

const perSecond = (count: number, { seconds }: Figures) => `${figure(count / seconds)}/s`

/** `web (ioredis 6.0.0) at 10.0.0.7, user app: 12 seen`, for the three with the most. */
function names(
  clients: Observation['clients'],
  of: (group: ClientGroup) => [number, string],
): string[] {
  return (clients ?? [])
    .map((group) => ({ label: group.label, of: of(group) }))
    .filter(({ of: [rank] }) => rank > 0)
    .toSorted((a, b) => b.of[0] - a.of[0])
    .slice(0, 3)
    .map(({ label, of: [, text] }) => `${label}: ${text}`)
}

const connectionChurn: Check = ({ figures, costs, clients }) => {
  if (!hasChurn(figures)) return null
  const { connectionsNotKept, commands, commandsPerTrip, lifetimeSeconds, seconds } = figures
  const { greeting } = chatterOf(figures, true)
  const trips = greeting.calls / Math.max(1, commandsPerTrip)
  const saving = costs.shareOf({ connections: connectionsNotKept, trips, micros: greeting.micros })
  const lifetime =
    lifetimeSeconds === null ? '' : `, open for ${figure(lifetimeSeconds * 1_000)} ms on average`
  return {
    id: 'connection-churn',
    severity: severityOf(saving, costs),
    title: `Clients open a connection for every ${figure(commands / connectionsNotKept)} commands instead of keeping connections.`,
    saving,
    saves: `${percent(saving)} of the main thread's work: ${perSecond(connectionsNotKept, figures)} connections and ${perSecond(greeting.calls, figures)} commands on connecting`,
    evidence: [
      `${counted(connectionsNotKept, 'connection')} opened and closed in ${figure(seconds)} s${lifetime}.`,
      ...names(clients, ({ short }) => [short, `${counted(short, 'short connection')} seen`]),
    ],
    documents:
      'Redis in Action: a client that opens a connection for each command reaches 25-30 % of redis-benchmark -c 1, one that keeps it 50-60 %; in the end: "Cannot assign requested address". Tencent Cloud: 93,580 PING/s on kept connections, 16,472/s on 10,000 short ones.',
    remedy:
      'Share one client or connection pool for the whole life of the process: create it at the start, not in the request. If there is a pool, raise its size: beyond it some clients open short connections.',
  }
}

const singleTrips: Check = ({ figures, costs, clients }) => {
  const { commands, commandsPerTrip, trips } = figures
  if (commands < MIN_COMMANDS || commandsPerTrip >= 1.5) return null
  const { greeting } = chatterOf(figures, hasChurn(figures))
  const own = trips - greeting.calls / Math.max(1, commandsPerTrip)
  if (own < MIN_COMMANDS / 2) return null
  const saving = costs.shareOf({ trips: 0.8 * own })
  return {
    id: 'one-command-per-trip',
    severity: severityOf(saving, costs),
    title: `Clients send ${figure(commandsPerTrip)} commands per round trip: they wait for each reply before they send the next command.`,
    saving,
    saves: `up to ${percent(saving)} of the main thread's work, and four of five waits for the network, if commands went five at a time`,
    evidence: [
      `${perSecond(commands, figures)} commands arrived in ${perSecond(trips, figures)} reads.`,
      ...names(clients, ({ active, connections, commands: sent, lastCommands }) => [
        sent ?? active * connections,
        `${sent === null ? `active in ${percent(active)} of its samples` : counted(sent, 'command')}, such as ${lastCommands.slice(0, 3).join(', ')}`,
      ]),
    ],
    documents:
      'Redis in Action: update_token in one round trip instead of five makes 1.7-1.8 times the calls per second on one machine (3,257 to 5,991), 3.8 times at 0.271 ms (739 to 2,841), 5 times at 48 ms (3.67 to 18.2).',
    remedy:
      'Send commands that do not need the reply to another one together: in a pipeline, or as one variadic command (MGET, HSET with several fields). Requests that need one command each can share a pipeline: batch them by turn of the event loop (auto-pipelining).',
  }
}

const chatter: Check = ({ figures, costs, clients }) => {
  const { others } = chatterOf(figures, hasChurn(figures))
  const { calls, micros } = [...others.values()].reduce(add, noWork)
  if (calls < MIN_COMMANDS / 2 || calls < 0.05 * figures.commands) return null
  const trips = calls / Math.max(1, figures.commandsPerTrip)
  const saving = costs.shareOf({ trips, micros })
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
    documents:
      'Tencent Cloud: one client that sends INFO without pause takes 20 % of a core, and 80 % beside 9,999 connections (before Redis 5).',
    remedy:
      'Ask INFO at most every few seconds, from one monitor. Turn off checks before each command (PING or test on borrow) and ready checks by INFO; leave HELLO, AUTH and SELECT to the opening of a kept connection.',
  }
}

const transactions: Check = ({ figures, costs }) => {
  const of = (name: string) => figures.commandStats.get(name) ?? noWork
  const calls = TRANSACTION.reduce((sum, name) => sum + of(name).calls, 0)
  const watches = of('watch').calls
  // With WATCH a transaction is needed.
  if (calls < MIN_COMMANDS / 2 || calls < 0.05 * figures.commands || watches >= of('multi').calls) {
    return null
  }
  const trips = calls / Math.max(1, figures.commandsPerTrip)
  const saving = costs.shareOf({ trips, micros: of('multi').micros })
  return {
    id: 'transactions',
    severity: severityOf(saving, costs),
    title: `${percent(calls / figures.commands)} of the commands are MULTI and EXEC.`,
    saving,
    saves: `up to ${percent(saving)} of the main thread's work, and the waits of other clients while EXEC runs all commands at once`,
    evidence: [
      `${perSecond(of('multi').calls, figures)} transactions, ${watches === 0 ? 'none' : perSecond(watches, figures)} with WATCH.`,
    ],
    documents:
      'Redis in Action: MULTI and EXEC are not free and may delay important commands; a non-transactional pipeline has all the advantages without them.',
    remedy:
      'If nobody must see the commands half done, use a pipeline without a transaction: pipeline(False) in redis-py, pipeline() in ioredis, execAsPipeline() in node-redis.',
  }
}

/** Less than this waits for any client now and then. */
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
    title: `Replies wait in the server's memory for clients that do not read them in time.`,
    saving: null,
    saves: `${megabytes(most)} of memory for one connection (${percent(share)} of what there is)`,
    evidence: [
      ...names(slow, ({ outputBytes, lastCommands }) => [
        outputBytes,
        `${megabytes(outputBytes)} waited, after ${lastCommands.slice(0, 3).join(', ')}`,
      ]),
      ...(closed > 0 ? [`Redis closed ${counted(closed, 'client')} for it since its start.`] : []),
    ],
    documents:
      'Tencent Cloud: memory rises when a client does not read the replies to its pipeline in time, above all with MGET, HGETALL and LRANGE: read promptly, and do not put too many commands into one pipeline.',
    remedy:
      'Read replies as they come, in pipelines of at most some hundred commands. Limit the damage: client-output-buffer-limit normal, or maxmemory-clients.',
  }
}

const megabytes = (bytes: number) => `${figure(bytes / 1e6)} MB`
const commandName = (name: string) => name.replace('|', ' ').toUpperCase()

const rejections: Check = ({ figures, clients }): Finding | null => {
  const { rejected, rejectedSinceStart, connectedClients, maxClients } = figures
  const isNear = maxClients > 0 && connectedClients >= 0.8 * maxClients
  if (rejectedSinceStart === 0 && !isNear) return null
  return {
    id: 'rejected-connections',
    severity: rejected > 0 ? 'high' : isNear ? 'medium' : 'low',
    title:
      rejected > 0
        ? 'Redis refuses connections: maxclients is reached.'
        : isNear
          ? 'Redis is about to refuse connections: it is near maxclients.'
          : 'Redis refused connections at maxclients since its start.',
    saving: null,
    saves: `failed requests: ${perSecond(rejected, figures)} connections refused`,
    evidence: [
      `${counted(rejected, 'connection')} refused meanwhile, ${counted(rejectedSinceStart, 'connection')} since the start; ${counted(connectedClients, 'connection')} of ${figure(maxClients)} are taken.`,
      ...names(clients, ({ connections, active }) => [
        connections,
        `${counted(connections, 'connection')}, ${percent(1 - active)} of them idle`,
      ]),
    ],
    documents:
      'Tencent Cloud: when its pool is exhausted, a client may open short connections, and the server pays for each.',
    remedy:
      'Give each process one pool of a few connections and pipelines; close idle ones (timeout). Then raise maxclients if that many are needed, with the limit of open files.',
  }
}

export const clientChecks: readonly Check[] = [
  ...[connectionChurn, singleTrips, chatter, transactions],
  ...[slowReaders, rejections],
]
