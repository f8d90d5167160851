import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { print } from '@onetrip/stack/terminal.ts'
import { send } from '@onetrip/stack/testing/audit/client.ts'
import type { Viewer } from '@onetrip/stack/testing/audit/ledger.ts'
import { testCluster } from '@onetrip/stack/testing/cluster.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { logIn } from '@onetrip/stack/testing/viewing.ts'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { apiProcessForThisTest } from '../test/api-process.ts'

// STREAMS=10000 makes the table in docs/session-lifetimes.md.
const count = Number(process.env.STREAMS ?? 400)
const TOGETHER = 200
const CONCURRENCY = 16

const program = fileURLToPath(new URL('streaming-api.ts', import.meta.url))

async function oneRedis() {
  const { socket } = await redisForThisTest()
  const admin = new Redis(socket)
  onTestFinished(() => admin.disconnect())
  return { url: `unix://${socket}`, admins: [admin] }
}

async function severalNodes() {
  const { nodes, stop } = await testCluster()
  onTestFinished(() => stop())
  const addresses = nodes.map(({ address }) => address)
  return { url: `redis+cluster://${addresses}`, admins: nodes.map(({ admin }) => admin) }
}

/** Opens a stream. `endedAt` resolves with the time of its end (`performance.now()`). */
async function streamOf(url: string, { token }: Viewer) {
  const headers = { authorization: `Bearer ${token}` }
  const { body } = await request(`${url}/stream`, { headers })
  await once(body, 'data')
  return { endedAt: once(body.resume(), 'end').then(() => performance.now()) }
}

test.for([
  ['one Redis', oneRedis, false],
  ['one Redis, the subscription cut', oneRedis, true],
  ['a cluster of three nodes', severalNodes, false],
] as const)(
  'streams end with their sessions, %s',
  { timeout: 300_000 },
  async ([label, start, isCut]) => {
    const { url: REDIS_URL, admins } = await start()
    const settings = { REDIS_URL, LOGIN_LIMIT_PER_USER: '0', LOGIN_LIMIT_PER_ADDRESS: '0' }
    const [streaming, other] = await Promise.all([
      apiProcessForThisTest(settings, program),
      apiProcessForThisTest(settings),
    ])
    const times: number[] = []
    while (times.length < count) {
      const viewers = await logIn(other.url, Math.min(TOGETHER, count - times.length))
      const streams = await Promise.all(viewers.map((viewer) => streamOf(streaming.url, viewer)))
      let next = 0
      const endSome = async () => {
        for (let index = next++; index < viewers.length; index = next++) {
          if (isCut && index === Math.floor(viewers.length / 2)) {
            await Promise.all(admins.map((admin) => admin.client('KILL', 'TYPE', 'PUBSUB')))
          }
          const { answer } = await send(other.url, {
            path: '/logout',
            token: viewers[index]?.token ?? '',
          })
          expect(answer).toBe('204')
          const repliedAt = performance.now()
          void streams[index]?.endedAt.then((endedAt) => times.push(endedAt - repliedAt))
        }
      }
      const before = times.length
      await Promise.all(Array.from({ length: CONCURRENCY }, endSome))
      await expect.poll(() => times.length).toBe(before + viewers.length) // none is missed
    }
    times.sort((a, b) => a - b)
    const cells = [0.5, 0.99, 1].map((share) => times[Math.ceil(share * count) - 1]?.toFixed(1))
    print(`| ${[label, count, ...cells].join(' | ')} |`)
  },
)
