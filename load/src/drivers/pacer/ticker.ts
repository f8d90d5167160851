import { parentPort, workerData } from 'node:worker_threads'
import { sharedNow, type TickerData } from './ticking.ts'

// Node's timers round to milliseconds, and polling the clock would take a core away from what is
// measured. A thread that does nothing else can sleep as precisely as the kernel does.

/** Requests that are due within this time of each other share a tick, in milliseconds. */
const SHORTEST_MS = 0.1

const { schedule, ticks } = workerData as TickerData
const never = new Int32Array(new SharedArrayBuffer(4))

parentPort?.once('message', (startedAt: number) => {
  let next = 0
  while (next < schedule.length) {
    const rest = startedAt + (schedule[next] ?? 0) - sharedNow()
    if (rest > 0) Atomics.wait(never, 0, 0, Math.max(rest, SHORTEST_MS))
    const now = sharedNow() - startedAt
    while (next < schedule.length && (schedule[next] ?? 0) <= now) next++
    Atomics.add(ticks, 0, 1)
    Atomics.notify(ticks, 0)
  }
})
parentPort?.postMessage('ready')
