import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

// Both ends of what wakes the pacer whenever a request is due (ticker.ts says why), and their clock.

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
  shared: SharedArrayBuffer
}

export const tickerState = { waiting: 0, running: 1, stopped: 2 } as const

/** The memory that both threads share. */
export function cells(shared: SharedArrayBuffer) {
  return {
    ticks: new Int32Array(shared, 0, 1),
    state: new Int32Array(shared, 4, 1),
    startedAt: new Float64Array(shared, 8, 1),
  }
}

export interface Ticker {
  /** From now on `onTick` is called soon after each due time; `startedAt` is of the shared clock. */
  start(startedAt: number, onTick: () => void): void
  /** Resolves when its thread has ended. */
  stop(): Promise<void>
}

/** Resolves when the ticker can be started without delay. */
export async function prepareTicker(schedule: Float64Array): Promise<Ticker> {
  const shared = new SharedArrayBuffer(16)
  const { ticks, state, startedAt } = cells(shared)
  const data: TickerData = { schedule, shared }
  const worker = new Worker(new URL('./ticker.ts', import.meta.url), { workerData: data })
  let stopped = false
  await once(worker, 'message')
  return {
    start(at, onTick) {
      startedAt[0] = at
      Atomics.store(state, 0, tickerState.running)
      Atomics.notify(state, 0)
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
      Atomics.store(state, 0, tickerState.stopped)
      Atomics.notify(state, 0)
      Atomics.notify(ticks, 0) // nobody waits for it any more
      await worker.terminate()
    },
  }
}
