import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { partitionedKeys } from '@onetrip/cluster'
import { makeCertificates } from '@onetrip/stack/testing/certificates.ts'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { tlsFrontForThisTest } from '@onetrip/stack/testing/tls.ts'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from './api-process.ts'
import { ask, connectionsOf, logIn, metricsOf } from './client.ts'

const cluster = clusterOfThisFile()
const nodes = () => cluster.nodes.map(({ address }) => address)

test('a node down: degraded, and its connection counts as down; all nodes down: not ready', async () => {
  const { url } = await apiProcessForThisTest({
    REDIS_URL: `redis+cluster://${nodes().join()}`,
    JANITOR_INTERVAL_SECONDS: '0',
  })
  await expect.poll(() => connectionsOf(url)).toEqual({ ready: 3, down: 0 })
  const info = (await metricsOf(url)).find(({ name }) => name === 'onetrip_info')
  expect(info?.labels).toMatchObject({ topology: 'cluster', transport: 'tcp' })
  const [lost, ...others] = cluster.nodes
  const dead = new Set<(typeof cluster.nodes)[number]>()
  onTestFinished(() => void Promise.all([...dead].map((node) => node.restart())))
  const kill = async (node: (typeof cluster.nodes)[number] | undefined) => {
    if (!node) return
    node.program.signal('SIGKILL')
    await node.program.exited
    dead.add(node)
  }
  await kill(lost)
  const readiness = () => ask(`${url}/readyz`)
  const degraded = { status: 200, strategy: 'batch', nodes: 3, unavailable: 1 }
  await expect.poll(readiness).toEqual(degraded)
  await expect.poll(() => connectionsOf(url)).toEqual({ ready: 2, down: 1 })
  // A cluster that requires full slot coverage is down as a whole, although its nodes answer.
  const wantAllSlots = (value: 'yes' | 'no') =>
    Promise.all(
      others.map(({ admin }) => admin.config('SET', 'cluster-require-full-coverage', value)),
    )
  await wantAllSlots('yes')
  await expect.poll(readiness).toMatchObject({ status: 503 })
  await wantAllSlots('no')
  await expect.poll(readiness).toEqual(degraded)
  for (const node of others) await kill(node)
  await expect.poll(readiness).toMatchObject({ status: 503 })
  for (const node of dead) await node.restart()
  dead.clear()
  await expect.poll(readiness).toEqual({ status: 200, strategy: 'batch' })
  await expect.poll(() => connectionsOf(url)).toEqual({ ready: 3, down: 0 })
})

test('TLS, and a user with the permissions of users.acl, also while slots move', async () => {
  const password = 'p@ss/word'
  const rules = apiRules(password)
  const folder = await temporaryFolder()
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, `${password}\n`)
  const certificates = makeCertificates(folder)
  const fronts = await Promise.all(
    cluster.nodes.map(async ({ admin, port }) => {
      const front = await tlsFrontForThisTest(admin.options.path ?? '', certificates)
      await admin.call('ACL', 'SETUSER', 'api', ...rules)
      await admin.call('ACL', 'SETUSER', 'default', 'off')
      await admin.config('SET', 'cluster-announce-port', String(front.port))
      onTestFinished(async () => {
        await admin.config('SET', 'cluster-announce-port', String(port))
        await admin.call('ACL', 'SETUSER', 'default', 'on')
      })
      return front
    }),
  )
  const ports = fronts.map(({ port }) => port).sort()
  await expect.poll(announcedPorts).toEqual([ports, ports, ports])
  const { api, url } = await apiProcessForThisTest({
    REDIS_URL: `rediss+cluster://api@127.0.0.1:${fronts[0]?.port}`,
    REDIS_PASSWORD_FILE: passwordFile,
    REDIS_TLS_CA_FILE: certificates.authority.certFile,
    REDIS_TLS_CERT_FILE: certificates.client.certFile,
    REDIS_TLS_KEY_FILE: certificates.client.keyFile,
    REDIS_TLS_SERVER_NAME: 'redis.test',
  })
  const users = Array.from({ length: 8 }, (_, index) => `restricted ${index}`)
  for (const user of users) {
    const token = await logIn(url, user)
    expect(await ask(`${url}/views`, { token, body: { item: user } })).toMatchObject({
      status: 200,
      views: 1,
    })
  }
  expect(await ask(`${url}/readyz`)).toEqual({ status: 200, strategy: 'batch' })

  const token = await logIn(url, 'moving')
  const key = partitionedKeys().login(token.slice(0, 32))
  const slot = (await cluster.nodes[0]?.admin.cluster('KEYSLOT', key)) ?? 0
  // MIGRATE sends no password.
  for (const { admin } of cluster.nodes) await admin.call('ACL', 'SETUSER', 'default', 'on')
  for (const target of cluster.nodes) {
    await cluster.moveSlot(slot, target, async () => {
      const view = await ask(`${url}/views`, { token, body: { item: 'book' } })
      expect(view).toMatchObject({ status: 200, user: 'moving' })
    })
  }
  const denied = await Promise.all(cluster.nodes.map(({ admin }) => admin.call('ACL', 'LOG')))
  expect(denied).toEqual([[], [], []])
  expect(api.lastLines.join('\n')).not.toContain(password)
  for (const { names } of fronts) expect(new Set(names)).toEqual(new Set(['redis.test']))
})

/** The ports of the nodes as each node announces them. */
async function announcedPorts(): Promise<number[][]> {
  const views = await Promise.all(cluster.nodes.map(({ admin }) => admin.cluster('SLOTS')))
  return views.map((slots) => slots.map(([, , node]) => Number(node?.[1])).sort())
}

/** The rules of the user `api` in users.acl, as arguments of ACL SETUSER. */
function apiRules(password: string): string[] {
  const path = new URL('../../server-build/users.acl', import.meta.url)
  const hash = createHash('sha256').update(password).digest('hex')
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
  const start = lines.findIndex((line) => line.startsWith('user api '))
  const end = lines.findIndex((line, index) => index > start && !line.startsWith(' '))
  return lines
    .slice(start, end)
    .join(' ')
    .replace('user api ', '')
    .replace('@API_PASSWORD_SHA256@', hash)
    .split(' ')
    .filter((rule) => rule !== '')
}
