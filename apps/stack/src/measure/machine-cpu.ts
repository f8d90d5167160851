import { readdir, readFile } from 'node:fs/promises'

/** If this share of CPU time or more went elsewhere, rates are not what the machine can do. */
export const DISTURBED = 0.1

const TICKS_PER_SECOND = 100 // USER_HZ, which is the same on all platforms of Linux

/**
 * CPU time of the machine since it started, in seconds, summed over its cores, from the first line of
 * `/proc/stat` (proc_stat(5)): used by programs and the kernel; stolen, that is given to other guests by the
 * host of a virtual machine although it was wanted here; and all, idle time included.
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

/** Null where the system does not report it. */
export const readMachineCpu = (): Promise<MachineCpu | null> =>
  readFile('/proc/stat', 'utf8').then(parseStat, () => null)

/**
 * Share of the machine's CPU time, 0 to 1, that went to other programs than ours (`ownSeconds`), or to other
 * guests of its host, between two readings; null without these.
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

/** A line of `/proc/<pid>/stat` (proc_pid_stat(5)); the CPU time includes that of children that ended. */
export function parseProcessStat(text: string): { parent: number; cpuSeconds: number } {
  // The name in brackets may hold anything, brackets and spaces included.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11).map(Number)
  return {
    parent: Number(fields[1]),
    cpuSeconds: (utime + stime + cutime + cstime) / TICKS_PER_SECOND,
  }
}

/** CPU time of a process and all its descendants, in seconds; null where the system does not report it. */
export async function readFamilyCpu(pid: number): Promise<number | null> {
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter(Number.isInteger)
  const read = (pid: number) =>
    readFile(`/proc/${pid}/stat`, 'utf8').then(
      (text) => [{ pid, ...parseProcessStat(text) }],
      () => [], // it has ended meanwhile
    )
  const processes = (await Promise.all(pids.map(read))).flat()
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const total = ({ pid, cpuSeconds }: (typeof processes)[number]): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + total(child), cpuSeconds)
  const first = processes.find((one) => one.pid === pid)
  return first ? total(first) : null
}
