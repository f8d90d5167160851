export { type ClusterOptions, cluster } from './cluster.ts'
export {
  type ClusterAddress,
  parseLocation,
  type RedisLocation,
  type SentinelAddress,
} from './location.ts'
export { shortCluster } from './nodes.ts'
export { partitionedKeys } from './partitioned-keys.ts'
export { type SentinelOptions, sentinel } from './sentinel.ts'
