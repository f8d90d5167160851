import { readdir, readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/**
 * Reads the CPU time of every thread of a process from `/proc/<pid>/task/<tid>/schedstat`, which
 * counts in nanoseconds (INFO's figures come from getrusage, which on some kernels are sampled).
 *
 * @returns seconds since its start: of all threads together; of the main one, and how long that was ready to
 *   run but another had the core. `at` is of a clock that only goes forward.
 * @throws Problem where that is unknown: not on Linux, or a kernel without CONFIG_SCHED_INFO.
 */
export async function readCpu(pid: number) {
  const folder = `/proc/${pid}/task`
  const read = async (tid: string) => {
    const text = await readFile(`${folder}/${tid}/schedstat`, 'utf8')
    return text.split(' ').map((nanoseconds) => Number(nanoseconds) / 1e9)
  }
  try {
    const tids = await readdir(folder)
    const threads = await Promise.all(tids.map(read))
    const [mainCpuSeconds = 0, mainWaitedSeconds = 0] = threads[tids.indexOf(String(pid))] ?? []
    const cpuSeconds = threads.reduce((sum, [ran = 0]) => sum + ran, 0)
    return { at: performance.now() / 1_000, cpuSeconds, mainCpuSeconds, mainWaitedSeconds }
  } catch (cause) {
    const why = 'CPU time per thread is known on Linux only, with CONFIG_SCHED_INFO'
    throw new Problem(`Process ${pid} cannot be measured (${why}): ${cause}`, { cause })
  }
}

export type CpuReading = Awaited<ReturnType<typeof readCpu>>
export type CpuUse = ReturnType<typeof cpuBetween>

/**
 * The CPU time between two readings of the same process; `mainDemand` is the share of the time, 0 to 1, in which
 * the main thread ran or was ready to.
 */
export function cpuBetween(before: CpuReading, after: CpuReading) {
  const seconds = after.at - before.at
  const mainCpuSeconds = after.mainCpuSeconds - before.mainCpuSeconds
  const mainWaitedSeconds = after.mainWaitedSeconds - before.mainWaitedSeconds
  return {
    seconds,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    mainCpuSeconds,
    mainDemand: (mainCpuSeconds + mainWaitedSeconds) / seconds,
  }
}
