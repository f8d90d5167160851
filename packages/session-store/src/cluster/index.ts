import '../node-version.ts'

export { type ClusterAddress, checkAddress, type SentinelAddress } from './address.ts'
export { createCluster, safeClusterOptions } from './client.ts'
export { partitionedKeys } from './partitioned-keys.ts'
export { type ClusterSenderOptions, clusterSender } from './sender.ts'
export { type SentinelSenderOptions, sentinelConnection, sentinelSender } from './sentinel.ts'
