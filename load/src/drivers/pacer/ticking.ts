import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

// What wakes the pacer whenever a request is due (ticker.ts says why it is a thread), and their clock.

// performance.now() counts from the start of its own thread; hrtime does not, but is slower to read.
// Some time passes between reading the one and the other, the first time up to a millisecond.
const offset = Math.max(
  ...Array.from({ length: 50 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
)

/** Milliseconds, with fractions, of a clock that is the same in all threads of this process. */
export function sharedNow(): number {
  return offset + performance.now()
}

export interface TickerData {
  /** When requests are due, in milliseconds since the start. */
  schedule: Float64Array
  /** Shared: its one element is increased, and notified, when requests are due. */
  ticks: Int32Array
}

export interface Ticker {
  /** From now on `onTick` is called soon after each due time; `startedAt` is of the shared clock. */
  start(startedAt: number, onTick: () => void): void
  stop(): Promise<void>
}

/** Resolves when the ticker can be started without delay. */
export async function prepareTicker(schedule: Float64Array): Promise<Ticker> {
  const ticks = new Int32Array(new SharedArrayBuffer(4))
  const workerData: TickerData = { schedule, ticks }
  const worker = new Worker(new URL('./ticker.ts', import.meta.url), { workerData })
  await once(worker, 'message')
  let stopped = false
  return {
    start(startedAt, onTick) {
      worker.postMessage(startedAt)
      const listen = () => {
        if (stopped) return
        const seen = Atomics.load(ticks, 0)
        onTick()
        const waiting = Atomics.waitAsync(ticks, 0, seen)
        if (waiting.async) void waiting.value.then(listen)
        else setImmediate(listen) // it has ticked meanwhile
      }
      listen()
    },
    async stop() {
      stopped = true
      Atomics.notify(ticks, 0) // ends the wait
      await worker.terminate()
    },
  }
}
