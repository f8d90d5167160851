import { sum } from 'simple-statistics'
import { generateLoad, type LoadOptions } from '../../drivers/redis/generator/load.ts'
import { countInstructions } from '../../drivers/redis/instructions.ts'
import { profileThread } from '../../drivers/redis/profile.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { countSystemCalls, type SystemCalls } from '../../drivers/redis/system-calls.ts'

const PROFILED_SECONDS = 0.4
/** Of the runs in which system calls or instructions are counted. */
const COUNTED_SECONDS = 0.4

/** Samples the main thread during short connections; null if perf cannot sample it. */
export async function profileOf({ pid }: RedisServer, load: LoadOptions) {
  const { signal } = load
  const run = () => generateLoad({ ...load, end: { seconds: PROFILED_SECONDS + 0.1 } })
  return (await profileThread(pid, { seconds: PROFILED_SECONDS, signal }, run)).profile
}

/** Instructions of the main thread per short connection, or per command of a long one; null if perf cannot count them. */
export async function countInstructionsOf({ pid }: RedisServer, load: LoadOptions) {
  const run = () => generateLoad({ ...load, end: { seconds: COUNTED_SECONDS } })
  const { instructions, result } = await countInstructions(pid, run, load.signal)
  return instructions && result.completed > 0 ? instructions / result.completed : null
}

/** System calls of the main thread per short connection; null if strace cannot count them. */
export async function countSystemCallsOf({ pid }: RedisServer, load: LoadOptions) {
  const run = () => generateLoad({ ...load, end: { seconds: COUNTED_SECONDS } })
  const { calls, result } = await countSystemCalls(pid, run, load.signal)
  if (!calls || result.completed === 0) return null
  const counts = Object.entries(calls).map(([name, count]) => [name, count / result.completed])
  const systemCalls: SystemCalls = Object.fromEntries(counts)
  return { values: { systemCalls: sum(Object.values(systemCalls)) }, details: { systemCalls } }
}
