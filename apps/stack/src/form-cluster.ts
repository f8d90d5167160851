import { parseLocation } from '@onetrip/cluster'
import { redisUrlOf } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { formCluster } from './cluster/form.ts'
import { messageOf, Problem } from './problem.ts'
import { print, printError } from './terminal.ts'

// Forms a Redis Cluster from the running servers of REDIS_URL; does not change a formed cluster. For containers
// (docker-compose.yml). The first half of the nodes become primaries, the others replicas.

/** The default port of the cluster bus is the port plus this. */
const BUS_OFFSET = 10_000

async function form(env: NodeJS.ProcessEnv): Promise<void> {
  const { cluster } = parseLocation(redisUrlOf(env))
  if (!cluster) {
    throw new Problem('REDIS_URL must name the nodes: redis+cluster://user@redis-1,redis-2,redis-3')
  }
  const { nodes, username, password } = cluster
  const members = nodes.map((node) => {
    const { hostname: host, port: given } = new URL(`redis://${node}`)
    const port = Number(given || 6379)
    const admin = new Redis({
      host,
      port,
      retryStrategy: () => 500,
      maxRetriesPerRequest: 60,
      ...(username && { username }),
      ...(password && { password }),
    })
    admin.on('error', ({ message }) => printError(`${host}: ${message}`))
    return { host, port, busPort: port + BUS_OFFSET, admin }
  })
  try {
    await formCluster(members, { primaries: Math.ceil(members.length / 2) })
    print(`The cluster of ${nodes.join(', ')} is ready.`)
  } finally {
    for (const { admin } of members) admin.disconnect()
  }
}

try {
  await form(process.env)
} catch (error) {
  printError(messageOf(error))
  process.exitCode = 1
}
