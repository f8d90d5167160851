import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { formCluster, type Member } from '../../src/cluster/form.ts'
import { viewOf } from '../../src/cluster/view.ts'
import { type ClusterOptions, startCluster } from '../../src/cluster.ts'
import { freePorts } from '../../src/ports.ts'
import { startRedis } from '../../src/start-redis.ts'
import { temporaryFolder } from '../../src/testing/folders.ts'

/** Short, so that nodes detect failures quickly. */
const config = { 'cluster-node-timeout': '2000' }

/** Starts servers that do not know each other. */
async function members(count: number): Promise<Member[]> {
  const folder = await temporaryFolder()
  const ports = await freePorts(2 * count)
  return await Promise.all(
    ports.slice(0, count).map(async (port, index) => {
      const directory = join(folder, String(index))
      await mkdir(directory)
      const busPort = ports[count + index] ?? 0
      const program = await startRedis({ port, busPort, directory, config })
      onTestFinished(async () => void (await program.stop()))
      const admin = new Redis(port)
      onTestFinished(() => admin.disconnect())
      return { host: '127.0.0.1', port, busPort, admin }
    }),
  )
}

const roles = async (nodes: readonly Pick<Member, 'admin'>[]) =>
  await Promise.all(
    nodes.map(async ({ admin }) => {
      const { id, primary, slots } = (await viewOf(admin)).self
      return { id, primary, slots }
    }),
  )

async function clusterForThisTest(options: Partial<ClusterOptions> & { directory: string }) {
  const cluster = await startCluster({ config, ...options })
  onTestFinished(() => cluster.stop())
  return cluster
}

test('if a cluster bus does not answer, it times out and names the nodes that have not met', async () => {
  const [one, two] = (await members(2)) as [Member, Member]
  const [closedPort = 0] = await freePorts(1)
  const unreachable = { ...two, busPort: closedPort }
  const forming = formCluster([one, unreachable], { primaries: 1, timeoutMs: 1_000 })
  await expect(forming).rejects.toThrow(
    `127.0.0.1:${one.port} and 127.0.0.1:${two.port} have not met`,
  )
})

describe('a local cluster', () => {
  test('keeps roles, slots and data across a restart on other ports', async () => {
    const directory = await temporaryFolder()
    const first = await clusterForThisTest({ directory, primaries: 2 })
    const before = await roles(first.nodes)
    await first.nodes[1]?.admin.set('{0}key', 'kept')
    await first.stop()
    const second = await clusterForThisTest({ directory, primaries: 2 })
    expect(await roles(second.nodes)).toEqual(before)
    expect(await second.nodes[1]?.admin.get('{0}key')).toBe('kept')
  })

  test('with users, replicas are linked, and each user has the least permissions', async () => {
    const folder = await temporaryFolder()
    const secrets = join(folder, 'secrets')
    const { nodes } = await clusterForThisTest({ directory: join(folder, 'data'), secrets })
    const [{ admin, port }] = nodes as unknown as [(typeof nodes)[0]]
    const clientFor = async (username: string) => {
      const file = join(secrets, username, 'redis-password')
      const password = (await readFile(file, 'utf8')).trim()
      const client = new Redis({ port, username, password, enableReadyCheck: false })
      onTestFinished(() => client.disconnect())
      return client
    }
    const [replication, operator, api] = await Promise.all(
      ['replication', 'operator', 'api'].map(clientFor),
    )
    for (const [client, command, reply] of [
      [admin, 'GET login:{0}', 'NOPERM'],
      [admin, 'CLUSTER RESET', 'NOPERM'],
      [replication, 'GET login:{0}', 'NOPERM'],
      [replication, 'INFO', 'NOPERM'],
      [replication, 'CONFIG GET masterauth', 'NOPERM'],
      [operator, 'CONFIG GET masterauth', 'NOPERM'],
      [operator, 'INFO replication', 'connected_slaves:1'],
      [api, 'CLUSTER INFO', 'cluster_state:ok'],
      [api, 'CLUSTER FAILOVER', 'NOPERM'],
    ] as const) {
      const [name = '', ...args] = command.split(' ')
      const replied = client?.call(name, ...args).catch((error: Error) => error.message)
      expect(await replied, command).toContain(reply)
    }
  })
})
