import { commands } from './commands/commands.ts'
import { departures } from './departures.ts'
import { pipelines } from './pipelines.ts'
import { redisExperiment } from './redis.ts'
import { short } from './short/short.ts'
import { storm } from './storm.ts'
import { threads } from './threads/threads.ts'

/** The experiment `redis` with each of its presets. */
export const redisExperiments = [short, departures, storm, threads, pipelines, commands].map(
  redisExperiment,
)
