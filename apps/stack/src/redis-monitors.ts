import { RedisMonitor, type RedisReading } from './redis-info.ts'

/** The counters that `usageDuring` compares. */
export type UsedResources = Pick<
  RedisReading,
  'cpuSeconds' | 'mainCpuSeconds' | 'connections' | 'commands'
>

/** Reads the counters of one Redis, or of a whole cluster. */
export interface Monitor extends Pick<RedisMonitor, 'lost' | 'close'> {
  read(): Promise<UsedResources>
}

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

function togetherOf(all: readonly RedisReading[], isPrimary: readonly boolean[]): UsedResources {
  const primaries = all.filter((_, index) => isPrimary[index])
  const sum = (readings: readonly RedisReading[], name: keyof UsedResources) =>
    readings.reduce((total, reading) => total + reading[name], 0)
  return {
    cpuSeconds: sum(all, 'cpuSeconds'),
    mainCpuSeconds: sum(all, 'mainCpuSeconds'),
    connections: sum(primaries, 'connections'),
    commands: sum(primaries, 'commands'),
  }
}
