import type { Experiment } from './experiment/experiment.ts'
import { client } from './experiments/client/client.ts'
import { commands } from './experiments/commands/commands.ts'
import { ioThreads } from './experiments/io-threads/io-threads.ts'
import { pipelining } from './experiments/pipelining/pipelining.ts'
import { ports } from './experiments/ports/ports.ts'

/** All of them, in the order in which they are listed and run. A new one needs one line here. */
export const experiments: readonly Experiment[] = [ioThreads, pipelining, client, commands, ports]
