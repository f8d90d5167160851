import type { Experiment } from './experiment/experiment.ts'
import { ioThreads } from './experiments/io-threads/io-threads.ts'
import { retention } from './experiments/retention/retention.ts'
import { store } from './experiments/store/store.ts'

/** All of them, in the order in which they are listed and run. A new one needs one line here. */
export const experiments: readonly Experiment[] = [store, retention, ioThreads]
