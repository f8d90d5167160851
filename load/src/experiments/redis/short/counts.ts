import { sum } from 'simple-statistics'
import { measureLoad } from '../../../drivers/redis/cost.ts'
import { generateLoad, type LoadOptions } from '../../../drivers/redis/generator/load.ts'
import { countInstructions } from '../../../drivers/redis/instructions.ts'
import { profileThread } from '../../../drivers/redis/profile.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { countSystemCalls, type SystemCalls } from '../../../drivers/redis/system-calls.ts'
import type { Measured } from '../../../experiment/shape.ts'

/** Of a run in which something is counted or sampled. */
const SECONDS = 0.4

/**
 * Measures a load, then counts the work of the main thread in further runs: instructions and, if wanted, system calls
 * (each per connection or command), and samples. What strace or perf cannot count is null or missing.
 */
export async function countedLoad(
  server: RedisServer,
  load: LoadOptions,
  wanted = { systemCalls: false, profile: false },
): Promise<Measured> {
  const run = await measureLoad(server, load)
  const instructions = await instructionsOf(server, load)
  const systemCalls = wanted.systemCalls ? await systemCallsOf(server, load) : null
  const profile = wanted.profile ? await profileOf(server, load) : null
  const details = { ...(systemCalls && { systemCalls }), ...(profile && { profile }) }
  return {
    ...run,
    values: {
      ...run.values,
      instructions,
      ...(systemCalls && { systemCalls: sum(Object.values(systemCalls)) }),
    },
    ...(Object.keys(details).length > 0 && { details }),
  }
}

const runFor = (load: LoadOptions, seconds: number) => () =>
  generateLoad({ ...load, end: { seconds } })

async function instructionsOf({ pid }: RedisServer, load: LoadOptions) {
  const work = runFor(load, SECONDS)
  const { instructions, result } = await countInstructions(pid, work, load.signal)
  return instructions && result.completed > 0 ? instructions / result.completed : null
}

async function systemCallsOf({ pid }: RedisServer, load: LoadOptions) {
  const work = runFor(load, SECONDS)
  const { calls, result } = await countSystemCalls(pid, work, load.signal)
  if (!calls || result.completed === 0) return null
  const perReply = Object.entries(calls).map(([name, count]) => [name, count / result.completed])
  return Object.fromEntries(perReply) as SystemCalls
}

async function profileOf({ pid }: RedisServer, load: LoadOptions) {
  const options = { seconds: SECONDS, signal: load.signal }
  return (await profileThread(pid, options, runFor(load, SECONDS + 0.1))).profile
}
