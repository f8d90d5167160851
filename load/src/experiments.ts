import type { Experiment } from './experiment/experiment.ts'
import { http } from './experiments/http/http.ts'
import { ioThreads } from './experiments/io-threads/io-threads.ts'
import { scaling } from './experiments/scaling/scaling.ts'

/** All of them, in the order in which they are listed and run. A new one needs one line here. */
export const experiments: readonly Experiment[] = [http, scaling, ioThreads]
