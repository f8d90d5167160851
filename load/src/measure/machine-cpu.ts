import { readdir, readFile } from 'node:fs/promises'

/** From this share of CPU time that went elsewhere on, rates are not what the machine can do. */
export const DISTURBED = 0.1

/** CPU time of a whole machine since it started, in seconds, summed over its cores. */
export interface MachineCpu {
  /** What programs and the kernel used. */
  used: number
  /** What the host of a virtual machine gave to others although it was wanted here. */
  stolen: number
  /** All there was, idle time included. */
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

/** Null where the platform does not tell. */
export async function readMachineCpu(): Promise<MachineCpu | null> {
  const text = await readFile('/proc/stat', 'utf8').catch(() => null)
  return text === null ? null : parseStat(text)
}

/**
 * Share of the machine's CPU time, 0 to 1, that went to other programs than ours, or to other guests of
 * its host; null where the platform does not tell.
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

/** A line of `/proc/<pid>/stat` (proc_pid_stat(5)): whose child, and the CPU time of its dead ones, too. */
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

/** CPU time of a process and all that it started, in seconds; null where the platform does not tell. */
export async function readFamilyCpu(pid: number): Promise<number | null> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const texts = await Promise.all(
    pids.map((each) => readFile(`/proc/${each}/stat`, 'utf8').catch(() => null)),
  )
  const processes = new Map<number, ReturnType<typeof parseProcessStat>>()
  for (const [index, text] of texts.entries()) {
    if (text !== null) processes.set(Number(pids[index]), parseProcessStat(text))
  }
  if (!processes.has(pid)) return null
  const children = Map.groupBy(processes.keys(), (each) => processes.get(each)?.parent)
  const total = (each: number): number =>
    (processes.get(each)?.cpuSeconds ?? 0) +
    (children.get(each) ?? []).reduce((sum, child) => sum + total(child), 0)
  return total(pid)
}
