import { type CommandStats, commandStats } from '@onetrip/session-store'
import { commandsBetween } from '@onetrip/stack/redis-info.ts'
import type { Census } from './census.ts'

type Info = ReadonlyMap<string, string>

/** What a server did while the doctor watched, without the doctor's own commands. Times are in seconds. */
export interface Figures {
  seconds: number
  commandsPerSecond: number
  /**
   * Commands for each read from a socket that brought commands: 1 where nobody pipelines. An upper bound where
   * scripts ran, because INFO also counts the commands that they run.
   */
  commandsPerTrip: number
  trips: number
  commands: number
  connectionsOpened: number
  /** Opened and closed again: connections that were not kept. */
  connectionsNotKept: number
  /** Mean lifetime of these; null where none was seen or CLIENT LIST was not. */
  lifetimeSeconds: number | null
  /** Cores that the main thread used, 0 to 1, in programs and in the kernel. */
  mainThread: { user: number; kernel: number }
  /** The same of the whole process, with I/O threads and children's threads. */
  process: { user: number; kernel: number }
  networkInPerSecond: number
  networkOutPerSecond: number
  connectedClients: number
  maxClients: number
  rejected: number
  rejectedSinceStart: number
  /** Writes that waited for an fsync of the append-only file. */
  delayedFsyncs: number
  /** Memory that the server keeps for its clients, in bytes. */
  clientMemory: number
  /** The longest output buffer of a client that was seen, in bytes. */
  longestOutput: number
  commandStats: Map<string, CommandStats>
}

const SCRIPT = /^(eval|evalsha|fcall)(_ro)?$/

/** Whether scripts or functions ran. */
export const hasScripts = (stats: ReadonlyMap<string, CommandStats>): boolean =>
  [...stats.keys()].some((name) => SCRIPT.test(name))

const number = (info: Info, field: string) => Number(info.get(field) ?? 0)

/**
 * The figures of a watch.
 *
 * @param own the doctor's commands between the two replies, by the name that INFO gives them.
 * @throws RangeError when the counters went back: the server restarted, or they were reset.
 */
export function figuresOf(
  before: Info,
  after: Info,
  {
    seconds,
    own,
    census,
  }: { seconds: number; own: ReadonlyMap<string, number>; census: Census | null },
): Figures {
  const grown = (field: string) => number(after, field) - number(before, field)
  const stats = commandsBetween(commandStats(before), commandStats(after), own)
  const isReset = [grown('total_commands_processed'), grown('total_connections_received')].some(
    (n) => n < 0,
  )
  if (isReset || before.get('run_id') !== after.get('run_id')) {
    throw new RangeError('the counters of INFO went back')
  }
  const ownCommands = [...own.values()].reduce((sum, count) => sum + count, 0)
  const opened = grown('total_connections_received')
  const closed = Math.max(0, opened - grown('connected_clients'))
  // A client that closes its connection causes a read without a command; after QUIT Redis closes.
  const ends = Math.max(0, closed - (stats.get('quit')?.calls ?? 0))
  const commands = Math.max(0, grown('total_commands_processed') - ownCommands)
  const trips = Math.max(0, grown('total_reads_processed') - ownCommands - ends)
  const notKept = Math.min(opened, closed)
  const cpu = (suffix = '') => ({
    user: grown(`used_cpu_user${suffix}`) / seconds,
    kernel: grown(`used_cpu_sys${suffix}`) / seconds,
  })
  const shortOpen = census?.shortOpen ?? 0
  return {
    ...{ seconds, commands, trips, commandStats: stats },
    commandsPerSecond: commands / seconds,
    commandsPerTrip: trips > 0 ? commands / trips : 0,
    connectionsOpened: opened,
    connectionsNotKept: notKept,
    lifetimeSeconds: shortOpen > 0 && notKept > 0 ? (shortOpen * seconds) / notKept : null,
    // Redis 6.0 does not report the main thread.
    mainThread: cpu(after.has('used_cpu_user_main_thread') ? '_main_thread' : ''),
    process: cpu(),
    networkInPerSecond: grown('total_net_input_bytes') / seconds,
    networkOutPerSecond: grown('total_net_output_bytes') / seconds,
    connectedClients: number(after, 'connected_clients'),
    maxClients: number(after, 'maxclients'),
    rejected: grown('rejected_connections'),
    rejectedSinceStart: number(after, 'rejected_connections'),
    delayedFsyncs: grown('aof_delayed_fsync'),
    clientMemory: number(after, 'mem_clients_normal'),
    longestOutput: Math.max(
      number(after, 'client_recent_max_output_buffer'),
      ...(census?.groups() ?? []).map(({ outputBytes }) => outputBytes),
    ),
  }
}

// What a connection costs the main thread beside a round trip: accepting, registering and closing it.
// Measured with all builds (docs/redis-experiments.md): between one and two.
const TRIPS_PER_CONNECTION = 1.5
/** The least that a round trip costs, in microseconds, where the system counts CPU time too coarsely. */
const LEAST_TRIP_MICROS = 2

/** What one more command in a pipeline costs beside its execution (docs/redis-experiments.md: 0.025). */
const TRIPS_PER_PIPELINED_COMMAND = 0.03
/** Below this many commands for each read, hardly anybody pipelines. */
export const FEW_PER_TRIP = 1.5

/** Shares of the main thread's work that could be saved. */
export interface Costs {
  /** Cores that the main thread used, 0 to 1. */
  busy: number
  /** The part of its time that is not the execution of commands: sockets, parsing, replies. */
  ioShare: number
  /** What that many calls cost in round trips: one each where nobody pipelines. */
  tripsOf(calls: number): number
  /** The share of its time that so many round trips, connections, and calls of commands took. */
  shareOf(work: { trips?: number; connections?: number; micros?: number }): number
}

/**
 * Divides the main thread's time: the execution of commands is in INFO commandstats; the rest is divided among
 * round trips and connections.
 */
export function costsOf(figures: Figures): Costs {
  const { seconds, trips, commandsPerTrip, connectionsNotKept, mainThread } = figures
  const { commandStats: stats } = figures
  // The time of EXEC and of scripts contains that of their commands, which are there, too. How much of it is not
  // known: scripts may also compute. So the execution took at least the larger of these two sums.
  const time = { scripts: 0, commands: 0 }
  for (const [name, { micros }] of stats) {
    if (name !== 'exec') time[SCRIPT.test(name) ? 'scripts' : 'commands'] += micros
  }
  const executed = Math.max(time.scripts, time.commands)
  const units = trips + TRIPS_PER_CONNECTION * connectionsNotKept
  const used = (mainThread.user + mainThread.kernel) * seconds * 1e6
  const io = Math.max(used - executed, units * LEAST_TRIP_MICROS)
  const total = Math.max(1, executed + io)
  const unit = units > 0 ? io / units : 0
  return {
    busy: mainThread.user + mainThread.kernel,
    ioShare: io / total,
    tripsOf: (calls) =>
      calls *
      (commandsPerTrip < FEW_PER_TRIP
        ? 1 / Math.max(1, commandsPerTrip)
        : TRIPS_PER_PIPELINED_COMMAND),
    shareOf: ({ trips: some = 0, connections = 0, micros = 0 }) =>
      Math.min(1, (unit * (some + TRIPS_PER_CONNECTION * connections) + micros) / total),
  }
}
