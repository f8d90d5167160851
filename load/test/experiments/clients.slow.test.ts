import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { expectClients, quick } from '../support/clients.ts'
import { runExperiment } from '../support/experiment.ts'

test('measures the clients for Node', async () => {
  await expectClients(null)
})

test('leaves out the clients whose language is missing, and says so', async () => {
  const { text, result } = await runExperiment(
    'clients',
    [...quick, '--clients=ioredis,rueidis,redis-rs,bun'],
    { PATH: await temporaryFolder() },
  )
  expect(text).toMatch(/^Go +not installed: rueidis left out$/m)
  expect(text).toMatch(/^Rust +not installed: redis-rs left out$/m)
  expect(text).toMatch(/^Bun +not installed: bun left out$/m)
  expect(new Set(result.samples.map(({ case: one }) => one.client))).toEqual(new Set(['ioredis']))
})
