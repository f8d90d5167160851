import { parentPort, workerData } from 'node:worker_threads'
import { cells, sharedNow, type TickerData, tickerState } from './ticking.ts'

// Node's timers round to milliseconds, and polling the clock would take a core away from what is
// measured. A thread that does nothing else can sleep as precisely as the kernel does.

/** Requests that are due within this time of each other share a tick, in milliseconds. */
const SHORTEST_MS = 0.1

const { schedule, shared } = workerData as TickerData
const { ticks, state, startedAt } = cells(shared)
const never = new Int32Array(new SharedArrayBuffer(4))

parentPort?.postMessage('ready')
Atomics.wait(state, 0, tickerState.waiting)
const start = startedAt[0] ?? 0
let next = 0
while (next < schedule.length && Atomics.load(state, 0) === tickerState.running) {
  const rest = start + (schedule[next] ?? 0) - sharedNow()
  if (rest > 0) Atomics.wait(never, 0, 0, Math.max(rest, SHORTEST_MS))
  const now = sharedNow() - start
  while (next < schedule.length && (schedule[next] ?? 0) <= now) next++
  Atomics.add(ticks, 0, 1)
  Atomics.notify(ticks, 0)
}
