import { readdir, readFile } from 'node:fs/promises'

/** If other programs took this share of the CPU time or more, a measurement was disturbed. */
export const DISTURBED = 0.1

const TICKS_PER_SECOND = 100 // USER_HZ, which is the same on all Linux platforms

/**
 * CPU time of the machine since its start, in seconds, summed over all cores, from the first line of `/proc/stat`
 * (proc_stat(5)). `used`: by programs and the kernel. `stolen`: the host gave the time to other guests. `all`:
 * including idle time.
 */
export function parseStat(text: string) {
  const seconds = (text.split('\n', 1)[0] ?? '')
    .split(/\s+/)
    .map((n) => Number(n) / TICKS_PER_SECOND)
  const [, user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] =
    seconds
  const used = user + nice + system + irq + softirq
  return { used, stolen, all: used + idle + iowait + stolen }
}

type MachineCpu = ReturnType<typeof parseStat>

/** Null if the system does not report CPU time. */
export const readMachineCpu = (): Promise<MachineCpu | null> =>
  readFile('/proc/stat', 'utf8').then(parseStat, () => null)

/**
 * The share (0 to 1) of the machine's CPU time between two readings that other programs, or other guests of its
 * host, took. `ownSeconds`: the CPU time of our programs. Null without readings.
 */
export function shareElsewhere(
  before: MachineCpu | null,
  after: MachineCpu | null,
  ownSeconds: number,
): number | null {
  if (!before || !after) return null
  const others = Math.max(0, after.used - before.used - ownSeconds)
  return (others + after.stolen - before.stolen) / (after.all - before.all)
}

/** Parses `/proc/<pid>/stat` (proc_pid_stat(5)). The CPU time includes that of exited children. */
export function parseProcessStat(text: string): { parent: number; cpuSeconds: number } {
  // The name in brackets may contain brackets and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11).map(Number)
  return {
    parent: Number(fields[1]),
    cpuSeconds: (utime + stime + cutime + cstime) / TICKS_PER_SECOND,
  }
}

/** CPU time of a process and all its descendants, in seconds; null if the system does not report it. */
export async function readFamilyCpu(pid: number): Promise<number | null> {
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter(Number.isInteger)
  const read = (pid: number) =>
    readFile(`/proc/${pid}/stat`, 'utf8').then(
      (text) => [{ pid, ...parseProcessStat(text) }],
      () => [], // the process has exited meanwhile
    )
  const processes = (await Promise.all(pids.map(read))).flat()
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const total = ({ pid, cpuSeconds }: (typeof processes)[number]): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + total(child), cpuSeconds)
  const first = processes.find((one) => one.pid === pid)
  return first ? total(first) : null
}
