import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { strategyNames } from '@onetrip/session-store'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { runLoad } from './support/run.ts'

test('every strategy, at hand and far away: a table beside the documents, a file, nothing left', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'store.json')
  const args = ['store', '--quick', '--links=loopback,switch', '--json', json]
  const load = await runLoad({ state, args, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  const text = load.output.join('\n')
  expect(text).toMatch(/^switch +0\.\d+ ms .* 739 +2,841 +3\.8$/m)
  expect(text).toMatch(/switch: [\d.]+ times as many calls in a pipeline; the documents: 3\.8/)
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])

  const result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({ experiment: 'store', options: { concurrency: 1, rounds: 1 } })
  expect(result.samples).toHaveLength(2 * strategyNames.length)
  for (const sample of result.samples) {
    expect(sample.calls).toBeGreaterThan(0)
    expect(sample.latency.p50).toBeGreaterThan(0)
    // A call over the distant link takes at least the link's round trip.
    if (sample.link === 'switch') expect(sample.latency.p50).toBeGreaterThan(0.1)
    expect(sample.clientCpuMicros).toBeGreaterThan(0)
    expect(sample.redisCpuMicros).toBeGreaterThanOrEqual(sample.redisMainCpuMicros)
  }
})

test('pools and I/O threads, with several calls in flight, recording views', async () => {
  const state = await temporaryFolder()
  const args = [
    ...['store', '--quick', '--operation=record-view', '--strategies=batch', '--links=unix'],
    ...['--concurrency=8', '--pool-sizes=1,2', '--io-threads=1,2'],
  ]
  const load = await runLoad({ state, args, until: /the most calls with/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  const text = load.output.join('\n')
  for (const setting of ['1 +1', '1 +2', '2 +1', '2 +2']) {
    expect(text).toMatch(new RegExp(`^batch +${setting} +[\\d,]+ `, 'm'))
  }
})

test('a link that makes no sense is refused before anything is started', async () => {
  const state = await temporaryFolder()
  const args = ['store', '--links=5ms@fast']
  const load = await runLoad({ state, args, until: /a bandwidth such as 1Gb/ })
  expect((await load.exited).code).toBe(1)
  expect(await filesIn(state)).toEqual([])
})
