import '../node-version.ts'

export type { ClusterAddress, SentinelAddress } from './address.ts'
export { createCluster, safeClusterOptions, shortCluster } from './client.ts'
export { parseLocation, type RedisLocation } from './location.ts'
export { partitionedKeys } from './partitioned-keys.ts'
export { type ClusterSenderOptions, clusterSender } from './sender.ts'
export { type SentinelSenderOptions, sentinelConnection, sentinelSender } from './sentinel.ts'
