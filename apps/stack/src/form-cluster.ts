import { Redis } from 'ioredis'
import { passwordIn } from './address.ts'
import { formCluster } from './cluster/form.ts'
import { describeError, Problem } from './problem.ts'
import { print, printError } from './terminal.ts'

// Forms a Redis Cluster from running servers; does not change a formed cluster. For containers
// (docker-compose.yml). The first half of CLUSTER_NODES become primaries, the others replicas.

const DEFAULT_PORT = 6379
/** The default port of the cluster bus is the port plus this. */
const BUS_OFFSET = 10_000

async function form(env: NodeJS.ProcessEnv): Promise<void> {
  const { CLUSTER_NODES: hosts, REDIS_USERNAME: username, REDIS_PASSWORD_FILE: file } = env
  if (!hosts) throw new Problem('CLUSTER_NODES must name the nodes: redis-1,redis-2,redis-3')
  const password = file && (await passwordIn(file))
  const members = hosts.split(',').map((host) => {
    const admin = new Redis({
      host,
      port: DEFAULT_PORT,
      retryStrategy: () => 500,
      maxRetriesPerRequest: 60,
      ...(username && { username }),
      ...(password && { password }),
    })
    admin.on('error', ({ message }) => printError(`${host}: ${message}`))
    return { host, port: DEFAULT_PORT, busPort: DEFAULT_PORT + BUS_OFFSET, admin }
  })
  try {
    await formCluster(members, { primaries: Math.ceil(members.length / 2) })
    print(`The cluster of ${hosts} is ready.`)
  } finally {
    for (const { admin } of members) admin.disconnect()
  }
}

try {
  await form(process.env)
} catch (error) {
  printError(describeError(error))
  process.exitCode = 1
}
