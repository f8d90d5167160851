import { readFile } from 'node:fs/promises'

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
