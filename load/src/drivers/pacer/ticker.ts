import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'

// Wakes the pacer whenever a request is due. Node's timers round to milliseconds, and polling the clock would
// take a core away from what is measured: a thread that does nothing else can sleep as precisely as the
// kernel does.

// performance.now() counts from the start of its own thread; hrtime does not, but is slower to read.
// Some time passes between reading the one and the other, the first time up to a millisecond.
const offset = Math.max(
  ...Array.from({ length: 50 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
)

/** Milliseconds, with fractions, of a clock that is the same in all threads of this process. */
export const sharedNow = (): number => offset + performance.now()

/**
 * Resolves when the ticker can be started without delay.
 *
 * @param schedule when requests are due, in milliseconds since the start; in shared memory.
 */
export async function prepareTicker(schedule: Float64Array) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { schedule } })
  await once(worker, 'message')
  return {
    /** From now on `onTick` is called soon after each due time; `startedAt` is of the shared clock. */
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
    // Requests that are due within 0.1 ms of each other share a tick.
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
