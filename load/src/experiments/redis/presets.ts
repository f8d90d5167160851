import { commands } from './commands/commands.ts'
import { pipelines } from './pipelines.ts'
import { redisExperiment } from './redis.ts'
import { short } from './short/short.ts'
import { slowReader } from './slow-reader/slow-reader.ts'
import { threads } from './threads/threads.ts'

/** The experiment `redis` with each of its presets. */
export const redisExperiments = [short, threads, pipelines, commands, slowReader].map(
  redisExperiment,
)
