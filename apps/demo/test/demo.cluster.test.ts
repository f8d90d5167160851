import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest } from '../../api/test/api-process.ts'
import { ask, logIn } from '../../api/test/client.ts'
import { bearer, demoProgram } from './support.ts'

const cluster = clusterOfThisFile()

test('on a cluster: the nodes are listed, a login keeps the views of a guest, a stream ends with its session', async () => {
  const nodes = cluster.nodes.map(({ address }) => address)
  const { url } = await apiProcessForThisTest(
    { REDIS_URL: `redis+cluster://${nodes.join()}` },
    demoProgram,
  )
  const facts = await ask(`${url}/demo/server`)
  expect(facts).toMatchObject({ topology: 'cluster', unavailable: [] })
  expect(facts.nodes).toEqual(expect.arrayContaining(nodes))
  const { token } = await ask(`${url}/guest`, { method: 'POST' })
  const guest = String(token)
  await ask(`${url}/views`, { token: guest, body: { item: 'lamp' } })
  const { token: own } = await ask(`${url}/login`, { token: guest, body: { user: 'ada' } })
  expect(await ask(`${url}/me/views`, { token: String(own) })).toMatchObject({
    items: [{ item: 'lamp' }],
  })

  const stream = await fetch(`${url}/demo/session/events`, { headers: bearer(String(own)) })
  const method = 'DELETE'
  await ask(`${url}/me/sessions?others=true`, { method, token: await logIn(url) })
  expect(await stream.text()).toMatch(/^event: watching\n.*\n\nevent: ended\n.*\n\n$/)
})
