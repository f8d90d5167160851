import type { Census } from './census.ts'
import { type CommandStats, commandStats } from './info.ts'
import { Problem } from './problem.ts'

type Info = ReadonlyMap<string, string>

/** The server's activity during the watch, without the doctor's own commands. Times are in seconds. */
export interface Figures {
  seconds: number
  commandsPerSecond: number
  /**
   * Commands per read from a socket: 1 without pipelines. An upper bound if scripts ran, because INFO also counts
   * the commands that scripts execute. Null if unknown: reads are so large that a round trip may need several.
   */
  commandsPerTrip: number | null
  trips: number
  commands: number
  connectionsOpened: number
  /** Connections that were opened and closed during the watch. */
  connectionsNotKept: number
  /** Mean lifetime of the connections not kept; null if CLIENT LIST showed none or was not sent. */
  lifetimeSeconds: number | null
  /** CPU time of the main thread in user mode and in the kernel, as a share of a core, 0 to 1. */
  mainThread: { user: number; kernel: number }
  connectedClients: number
  maxClients: number
  rejected: number
  rejectedSinceStart: number
  commandStats: Map<string, CommandStats>
}

const SCRIPT = /^(eval|evalsha|fcall)(_ro)?$/

/** Whether scripts or functions were executed. */
export const hasScripts = (stats: ReadonlyMap<string, CommandStats>): boolean =>
  [...stats.keys()].some((name) => SCRIPT.test(name))

/** With larger reads on average, round trips may need several: Redis reads at most 16 kB at a time. In bytes. */
const LARGE_READ = 8_192

const number = (info: Info, field: string) => Number(info.get(field) ?? 0)

/** The commands called between two replies to INFO, without the `own` calls of the doctor. */
function commandsBetween(before: Info, after: Info, own: ReadonlyMap<string, number>) {
  const earlier = commandStats(before)
  const changes = [...commandStats(after)].map(([name, now]) => {
    const then = earlier.get(name) ?? { calls: 0, micros: 0 }
    const calls = now.calls - then.calls
    const others = Math.max(0, calls - (own.get(name) ?? 0))
    const micros = calls > 0 ? ((now.micros - then.micros) * others) / calls : 0
    return [name, { calls: others, micros }] as const
  })
  return new Map(changes.filter(([, { calls }]) => calls > 0))
}

/**
 * Computes the figures from two replies to INFO.
 *
 * @param own the number of the doctor's own commands between the replies, by their name in INFO.
 * @throws Problem when a counter decreased, because the server restarted or the counters were reset.
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
  const stats = commandsBetween(before, after, own)
  const isReset = [grown('total_commands_processed'), grown('total_connections_received')].some(
    (n) => n < 0,
  )
  if (isReset || before.get('run_id') !== after.get('run_id')) {
    throw new Problem(
      'During the watch, the server restarted or its counters were reset (CONFIG RESETSTAT). Run the doctor again.',
    )
  }
  const ownCommands = [...own.values()].reduce((sum, count) => sum + count, 0)
  const opened = grown('total_connections_received')
  const closed = Math.max(0, opened - grown('connected_clients'))
  // A client that closes its connection causes a read without a command. After QUIT, Redis closes the connection.
  const ends = Math.max(0, closed - (stats.get('quit')?.calls ?? 0))
  const commands = Math.max(0, grown('total_commands_processed') - ownCommands)
  // A read without a whole command is the end of a connection, or the start of a large command.
  const reads = grown('total_reads_processed') - ownCommands - ends
  const trips = Math.max(0, Math.min(commands, reads))
  const notKept = Math.min(opened, closed)
  const hasLargeReads = trips > 0 && grown('total_net_input_bytes') >= LARGE_READ * reads
  // Redis 6.0 does not report the main thread.
  const thread = after.has('used_cpu_user_main_thread') ? '_main_thread' : ''
  const shortOpen = census?.shortOpen ?? 0
  return {
    seconds,
    commands,
    trips,
    commandStats: stats,
    commandsPerSecond: commands / seconds,
    commandsPerTrip: hasLargeReads ? null : trips > 0 ? commands / trips : 0,
    connectionsOpened: opened,
    connectionsNotKept: notKept,
    lifetimeSeconds: shortOpen > 0 && notKept > 0 ? (shortOpen * seconds) / notKept : null,
    mainThread: {
      user: grown(`used_cpu_user${thread}`) / seconds,
      kernel: grown(`used_cpu_sys${thread}`) / seconds,
    },
    connectedClients: number(after, 'connected_clients'),
    maxClients: number(after, 'maxclients'),
    rejected: grown('rejected_connections'),
    rejectedSinceStart: number(after, 'rejected_connections'),
  }
}

// The CPU cost of opening and closing a connection, in round trips. All builds need between one and two
// (docs/redis-patches.md).
const TRIPS_PER_CONNECTION = 1.5
/** A lower bound of the CPU time of a round trip in microseconds, because the kernel counts CPU time coarsely. */
const MIN_TRIP_MICROS = 2

/**
 * The lowest and highest rates of ioredis and node-redis with one caller, in % of redis-benchmark -c 1
 * (docs/measurements/redis-experiments.md).
 */
export const NODE_RATES = { kept: [52, 66], opened: [8, 11] } as const

/**
 * The CPU cost of another command in a pipeline without its execution, in round trips (measured: 0.025;
 * docs/measurements/redis-experiments.md).
 */
const TRIPS_PER_PIPELINED_COMMAND = 0.03
/** Below this number of commands per read, hardly any client uses pipelines. */
export const FEW_PER_TRIP = 1.5

/** A model of the main thread's CPU time, for estimates of savings. */
export interface Costs {
  /** CPU time of the main thread, as a share of a core, 0 to 1. */
  busy: number
  /** The I/O cost of calls in round trips: 1 per call without pipelines; as in pipelines if unknown. */
  tripsOf(calls: number): number
  /** The share of its time for this work. @param work.micros execution time in microseconds. */
  shareOf(work: { trips?: number; connections?: number; micros?: number }): number
}

/**
 * Models the main thread's CPU time. INFO commandstats has the execution time of commands; the rest is divided among
 * round trips and connections.
 */
export function costsOf(figures: Figures): Costs {
  const { seconds, trips, commandsPerTrip, connectionsNotKept, mainThread } = figures
  const { commandStats: stats } = figures
  // The times of EXEC and of scripts include those of their commands, which INFO also lists separately. Scripts may
  // compute, too. So the total execution time is at least the larger of these two sums.
  const time = { scripts: 0, commands: 0 }
  for (const [name, { micros }] of stats) {
    if (name !== 'exec') time[SCRIPT.test(name) ? 'scripts' : 'commands'] += micros
  }
  const executed = Math.max(time.scripts, time.commands)
  const units = trips + TRIPS_PER_CONNECTION * connectionsNotKept
  const used = (mainThread.user + mainThread.kernel) * seconds * 1e6
  const io = Math.max(used - executed, units * MIN_TRIP_MICROS)
  const total = Math.max(1, executed + io)
  const unit = units > 0 ? io / units : 0
  return {
    busy: mainThread.user + mainThread.kernel,
    tripsOf: (calls) =>
      calls *
      (commandsPerTrip !== null && commandsPerTrip < FEW_PER_TRIP
        ? 1 / Math.max(1, commandsPerTrip)
        : TRIPS_PER_PIPELINED_COMMAND),
    shareOf: ({ trips: some = 0, connections = 0, micros = 0 }) =>
      Math.min(1, (unit * (some + TRIPS_PER_CONNECTION * connections) + micros) / total),
  }
}
