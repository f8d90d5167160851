import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'

// Wakes the pacer when a request is due. Timers of Node have a resolution of a millisecond, and polling the clock
// would use a whole core. A thread that only sleeps (Atomics.wait) has the precision of the kernel.

// performance.now() starts at 0 in each thread. hrtime is the same in all threads, but slower to read. Some time
// passes between the two readings, the first time up to a millisecond, so the maximum of many is used.
const offset = Math.max(
  ...Array.from({ length: 50 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
)

/** The time in milliseconds, with fractions, of a clock that is the same in all threads of this process. */
export const sharedNow = (): number => offset + performance.now()

/** Starts the thread of a ticker. Resolves when `start` will work without delay. @param schedule see `arrivalTimes`. */
export async function prepareTicker(schedule: Float64Array) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { schedule } })
  await once(worker, 'message')
  return {
    /** Calls `onTick` soon after each due time. @param startedAt the start of the schedule, by `sharedNow`. */
    start(startedAt: number, onTick: () => void) {
      worker.on('message', onTick)
      worker.postMessage(startedAt)
    },
    stop: () => worker.terminate(),
  }
}

function tick(schedule: Float64Array, startedAt: number): void {
  const never = new Int32Array(new SharedArrayBuffer(4))
  for (let next = 0; next < schedule.length; ) {
    const rest = startedAt + (schedule[next] ?? 0) - sharedNow()
    // Requests that are due within 0.1 ms share a tick.
    if (rest > 0) Atomics.wait(never, 0, 0, Math.max(rest, 0.1))
    const now = sharedNow() - startedAt
    while (next < schedule.length && (schedule[next] ?? 0) <= now) next++
    parentPort?.postMessage(0)
  }
}

if (workerData?.schedule) {
  parentPort?.once('message', (startedAt: number) => tick(workerData.schedule, startedAt))
  parentPort?.postMessage('ready')
}
