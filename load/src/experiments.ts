import type { Experiment } from './experiment/experiment.ts'
import { clients } from './experiments/clients/clients.ts'
import { cluster } from './experiments/cluster/cluster.ts'
import { commands } from './experiments/commands/commands.ts'
import { http } from './experiments/http/http.ts'
import { ioThreads } from './experiments/io-threads/io-threads.ts'
import { latency } from './experiments/latency/latency.ts'
import { pipelining } from './experiments/pipelining/pipelining.ts'
import { pools } from './experiments/pools/pools.ts'
import { ports } from './experiments/ports/ports.ts'
import { retention } from './experiments/retention/retention.ts'
import { shortConnections } from './experiments/short-connections/short-connections.ts'
import { slowReader } from './experiments/slow-reader/slow-reader.ts'
import { store } from './experiments/store/store.ts'

/** All experiments, in the order of `--help` and of reports. */
export const experiments: readonly Experiment[] = [
  http,
  latency,
  store,
  clients,
  pools,
  retention,
  cluster,
  ports,
  shortConnections,
  ioThreads,
  pipelining,
  commands,
  slowReader,
]
