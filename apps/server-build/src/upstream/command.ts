import { availableParallelism } from 'node:os'
import type { Command } from 'commander'
import type { Job } from '../job.ts'
import { type UpstreamOptions, upstreamOptions } from './options.ts'
import { type Outcome, testUpstream } from './test-upstream.ts'

const exitCodes: Record<Outcome, number> = { same: 0, worse: 1, incomplete: 3 }

/** `npm run test:upstream`, which is `npm run redis -- test`. */
export function upstreamCommand(job: Job): Command {
  return upstreamOptions(availableParallelism()).action(async (options: UpstreamOptions) => {
    const command = ['npm run test:upstream --', ...process.argv.slice(3)].join(' ')
    process.exitCode = exitCodes[await testUpstream(job, options, command)]
  })
}
