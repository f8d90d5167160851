import { readdir, readFile } from 'node:fs/promises'

/** If this share of CPU time or more went elsewhere, rates are not what the machine can do. */
export const DISTURBED = 0.1

/** CPU time of a whole machine since it started, in seconds, summed over its cores. */
export interface MachineCpu {
  /** By programs and the kernel. */
  used: number
  /** Given to other guests by the host of a virtual machine although it was wanted here. */
  stolen: number
  /** Idle time included. */
  all: number
}

const TICKS_PER_SECOND = 100 // USER_HZ, which is the same on all platforms of Linux

/** The first line of `/proc/stat` (proc_stat(5)). */
export function parseStat(text: string): MachineCpu {
  const ticks = (text.split('\n', 1)[0] ?? '').split(/\s+/).slice(1).map(Number)
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] =
    ticks
  const used = user + nice + system + irq + softirq
  return {
    used: used / TICKS_PER_SECOND,
    stolen: steal / TICKS_PER_SECOND,
    all: (used + idle + iowait + steal) / TICKS_PER_SECOND,
  }
}

/** Null where the system does not report it. */
export async function readMachineCpu(): Promise<MachineCpu | null> {
  const text = await readFile('/proc/stat', 'utf8').catch(() => null)
  return text === null ? null : parseStat(text)
}

/**
 * Share of the machine's CPU time, 0 to 1, that went to other programs than ours, or to other guests of
 * its host; null without readings.
 *
 * @param ownSeconds CPU time of ours between the two readings.
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
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0] = fields
  const ticks = fields.slice(11, 15) // utime, stime, cutime, cstime
  return { parent, cpuSeconds: ticks.reduce((sum, value) => sum + value, 0) / TICKS_PER_SECOND }
}

/** CPU time of a process and all its descendants, in seconds; null where the system does not report it. */
export async function readFamilyCpu(pid: number): Promise<number | null> {
  const names = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const read = async (name: string) => {
    const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    return text === '' ? [] : [{ pid: Number(name), ...parseProcessStat(text) }]
  }
  const processes = (await Promise.all(names.map(read))).flat()
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const total = ({ pid, cpuSeconds }: (typeof processes)[number]): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + total(child), cpuSeconds)
  const first = processes.find((one) => one.pid === pid)
  return first ? total(first) : null
}
