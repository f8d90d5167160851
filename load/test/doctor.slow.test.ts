import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DoctorReport } from '@onetrip/doctor'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { untilTestEnds } from '../../packages/doctor/test/clients.ts'
import { runDoctor } from '../../packages/doctor/test/run-doctor.ts'
import { apisOfThisFile } from './support/apis.ts'

const apis = apisOfThisFile()

/** Records views in a loop with a variant of the API. Returns a function that runs the doctor on its Redis. */
async function busy(variant: 'naive' | 'batch'): Promise<() => Promise<DoctorReport>> {
  const api = await apis.forThisTest(variant)
  const token = await api.login('ada')
  for (let index = 0; index < 8; index++) untilTestEnds(() => api.view(token, 'umbrella'))
  const json = join(await temporaryFolder(), 'report.json')
  return async () => {
    // Other tests may keep the machine busy and stall the server.
    await runDoctor(['--stall=60000', `--url=unix://${apis.redis.options.path}`, '--json', json])
    return JSON.parse(await readFile(json, 'utf8'))
  }
}

test('the first finding for our naive variant is connection churn', async () => {
  const report = await busy('naive')
  const first = async () => (await report()).findings[0]
  await expect.poll(first).toMatchObject({
    id: 'connection-churn',
    remedy: expect.stringContaining('connection pool'),
  })
})

test('there are no findings for our default variant', async () => {
  const report = await busy('batch')
  const commands = async () => {
    const { findings, figures } = await report()
    expect(findings).toEqual([])
    return figures.commands
  }
  await expect.poll(commands).toBeGreaterThan(100)
})
