import type { CommandStats } from '@onetrip/session-store'
import { RedisMonitor, type RedisReading } from './redis-info.ts'

/** Reads the counters of one Redis, or of a whole cluster. */
export type Monitor = Pick<RedisMonitor, 'read' | 'lost' | 'close'>

/**
 * Monitors a single Redis, or the reachable nodes of a cluster. For a cluster, CPU time is that of all nodes; other
 * counters are those of the primaries only, because replicas repeat their commands.
 *
 * @param urls URLs of all nodes.
 * @throws Problem as `RedisMonitor.connect` if no node is reachable.
 */
export async function monitorAll(
  urls: readonly string[],
  replyTimeoutMs: number,
): Promise<Monitor> {
  const tried = await Promise.allSettled(
    urls.map((url) => RedisMonitor.connect(url, replyTimeoutMs)),
  )
  const monitors = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const [first] = monitors
  if (first === undefined) throw (tried[0] as PromiseRejectedResult).reason
  if (urls.length === 1) return first
  const close = () => {
    for (const monitor of monitors) monitor.close()
  }
  try {
    const roles = await Promise.all(monitors.map((monitor) => monitor.isPrimary()))
    return {
      lost: Promise.race(monitors.map(({ lost }) => lost)),
      async read() {
        const readings = await Promise.all(monitors.map((monitor) => monitor.read()))
        return togetherOf(readings, roles)
      },
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

function togetherOf(all: readonly RedisReading[], isPrimary: readonly boolean[]): RedisReading {
  const primaries = all.filter((_, index) => isPrimary[index])
  const sum = (readings: readonly RedisReading[], name: keyof RedisReading) =>
    readings.reduce((total, reading) => total + Number(reading[name]), 0)
  return {
    cpuSeconds: sum(all, 'cpuSeconds'),
    userCpuSeconds: sum(all, 'userCpuSeconds'),
    kernelCpuSeconds: sum(all, 'kernelCpuSeconds'),
    mainThreadCpuSeconds: sum(all, 'mainThreadCpuSeconds'),
    connections: sum(primaries, 'connections'),
    commands: sum(primaries, 'commands'),
    reads: sum(primaries, 'reads'),
    netInputBytes: sum(primaries, 'netInputBytes'),
    netOutputBytes: sum(primaries, 'netOutputBytes'),
    commandStats: statsTogether(primaries),
  }
}

function statsTogether(readings: readonly RedisReading[]): Map<string, CommandStats> {
  const stats = new Map<string, CommandStats>()
  for (const [name, { calls, micros }] of readings.flatMap((one) => [...one.commandStats])) {
    const before = stats.get(name) ?? { calls: 0, micros: 0 }
    stats.set(name, { calls: before.calls + calls, micros: before.micros + micros })
  }
  return stats
}
