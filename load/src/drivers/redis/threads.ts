import { readdir, readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/** CPU time of one thread since its start. */
interface ThreadCpu {
  cpuSeconds: number
  /** How long it was ready to run but another thread had the core. */
  waitedSeconds: number
}

export interface CpuReading {
  /** In seconds of a clock that only goes forward. */
  at: number
  main: ThreadCpu
  /** All threads, the main one included, by thread id. */
  threads: ReadonlyMap<number, ThreadCpu>
}

/** What happened between two readings. */
export interface CpuUse {
  seconds: number
  mainCpuSeconds: number
  /** Of all threads together. */
  cpuSeconds: number
  /** Share of the time, 0 to 1, in which the main thread ran or was ready to. */
  mainDemand: number
}

/**
 * Reads the CPU time of every thread of a process from `/proc/<pid>/task/<tid>/schedstat`, which
 * counts in nanoseconds (INFO's figures come from getrusage, which on some kernels are sampled).
 *
 * @throws Problem where that is unknown: not on Linux, or a kernel without CONFIG_SCHED_INFO.
 */
export async function readCpu(pid: number): Promise<CpuReading> {
  const folder = `/proc/${pid}/task`
  const tids = await readdir(folder).catch((error: Error) => {
    throw new Problem(
      process.platform === 'linux'
        ? `Process ${pid} cannot be measured: ${error.message}`
        : 'This experiment measures CPU time per thread, which it can on Linux only.',
    )
  })
  const threads = new Map<number, ThreadCpu>()
  await Promise.all(
    tids.map(async (tid) => {
      const text = await readFile(`${folder}/${tid}/schedstat`, 'utf8').catch(() => '')
      const [ran = 0, waited] = text.split(' ').map(Number)
      if (waited === undefined) return // the thread has ended meanwhile
      threads.set(Number(tid), { cpuSeconds: ran / 1e9, waitedSeconds: waited / 1e9 })
    }),
  )
  const main = threads.get(pid)
  if (!main) {
    throw new Problem(`The kernel does not report the CPU time of threads (${folder}/*/schedstat).`)
  }
  return { at: performance.now() / 1_000, main, threads }
}

/** The CPU time between two readings of the same process. */
export function cpuBetween(before: CpuReading, after: CpuReading): CpuUse {
  const seconds = after.at - before.at
  let cpuSeconds = 0
  for (const [tid, thread] of after.threads) {
    cpuSeconds += thread.cpuSeconds - (before.threads.get(tid)?.cpuSeconds ?? 0)
  }
  const mainCpuSeconds = after.main.cpuSeconds - before.main.cpuSeconds
  const mainWaited = after.main.waitedSeconds - before.main.waitedSeconds
  return {
    seconds,
    mainCpuSeconds,
    cpuSeconds,
    mainDemand: (mainCpuSeconds + mainWaited) / seconds,
  }
}
