import { readdir, readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/**
 * Reads the CPU time of all threads of a process from `/proc/<pid>/task/<tid>/schedstat`, in nanoseconds. (INFO uses
 * getrusage, whose figures are sampled on some kernels.)
 *
 * @returns seconds since the start of the process: CPU time of all threads (`cpuSeconds`) and of the main thread
 *   (`mainCpuSeconds`), and the time in which the main thread waited for a core (`mainWaitedSeconds`). `at` is the
 *   time of the reading, of a monotonic clock.
 * @throws Problem on other systems than Linux, or without CONFIG_SCHED_INFO in the kernel.
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
    const why = 'CPU time per thread needs Linux with CONFIG_SCHED_INFO'
    throw new Problem(`The CPU time of process ${pid} cannot be read (${why}): ${cause}`, { cause })
  }
}

export type CpuReading = Awaited<ReturnType<typeof readCpu>>
export type CpuUse = ReturnType<typeof cpuBetween>

/**
 * The CPU time between two readings of a process. `mainDemand` is the share of the time in which the main thread ran
 * or was ready to run, 0 to 1.
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
