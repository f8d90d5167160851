import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'
import { expectNothingLeft, runLoad } from '../support/run.ts'

const short = ['--rounds=1', '--duration=0.5', '--warmup=0', '--sessions=8', '--no-report']

test('varies the link, with a relay and a row for each variant', async () => {
  const varied = ['--only=link', '--links=1ms@1Gb/s', '--variants=sequential,batch']
  const { text, result } = await runExperiment('scaling', [...short, ...varied])
  expect(text).toMatch(/^By link to Redis/m)
  expect(text).toMatch(/^1ms@1Gb\/s +batch .* [\d.]+ .* 0 *$/m)
  expect(result).toMatchObject({
    interrupted: false,
    options: { variants: ['sequential', 'batch'], sessions: 8 },
    software: { Clients: expect.stringMatching(/^ioredis [\d.]+ \(sequential, batch\)$/) },
  })
  expect(result.samples).toHaveLength(2)
  for (const { case: one, values, errors } of result.samples) {
    expect(one).toMatchObject({
      series: 'link',
      connections: 64,
      workers: 1,
      link: '1ms@1Gb/s',
    })
    expect(errors).toBeUndefined()
    expect(values.pingMs).toBeGreaterThan(0.8) // timers may fire slightly early
    expect(values.requestsPerSecond).toBeGreaterThan(0)
    expect(values.roundTrips).toBeGreaterThan(0)
  }
})

test('varies the workers, and keeps the complete rounds after an interrupt', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const varied = ['--only=workers', '--workers=2', '--variants=batch', '--rounds=1000']
  const args = ['scaling', ...short, ...varied, '--json', json]
  const load = await runLoad({ state, args, until: /^Round 2\// })
  // The command, Redis, and the API with two workers.
  expect(await processesOf(state)).toHaveLength(5)
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  const result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({ interrupted: true, experiment: 'scaling' })
  expect(result.samples.length).toBeGreaterThanOrEqual(2)
  expect(result.samples[0].case).toMatchObject({ series: 'workers', workers: 2 })
  await expectNothingLeft(state)
})

test('rejects options without a case', async () => {
  const args = ['scaling', ...short, '--only=workers', '--workers=2', '--variants=noop']
  const load = await runLoad({
    ...{ state: await temporaryFolder(), args },
    until: /--workers: all variants in --variants run as one process only/,
  })
  expect(await load.exited).toEqual({ code: 1, signal: null })
})

test('an interrupt during the start of the APIs stops all programs and removes all files', async () => {
  const state = await temporaryFolder()
  const args = ['scaling', ...short, '--only=link', '--links=switch']
  const load = await runLoad({ state, args, until: /^Scaling: / })
  // The command, Redis and the relay run. The APIs start next.
  await expect.poll(async () => (await processesOf(state)).length).toBeGreaterThan(3)
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  await expectNothingLeft(state)
})
