import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { expect, test } from 'vitest'
import type { ScalingResult } from '../src/scaling/result.ts'

const short = ['--rounds=1', '--duration=0.5', '--warmup=0', '--sessions=8', '--no-report']

async function resultIn(json: string): Promise<ScalingResult> {
  return JSON.parse(await readFile(json, 'utf8'))
}

test('by distance: tables, a file, and nothing left', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const varied = ['--only=distance', '--links=1ms@1Gb/s']
  const args = ['scaling', ...short, ...varied, '--variants=batch', '--json', json]
  const load = await run('cli.ts', { state, args, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  const text = load.output.join('\n')
  expect(text).toMatch(/^By distance to Redis, over 64 connections$/m)
  expect(text).toMatch(/^1ms@1Gb\/s +[\d.]+ ms +batch /m)
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])

  const result = await resultIn(json)
  expect(result).toMatchObject({
    format: 'onetrip-load-scaling/1',
    interrupted: false,
    options: { variants: ['batch'], sessions: 8 },
    clients: { batch: expect.stringMatching(/^ioredis /) },
  })
  const [distance] = result.series
  expect(distance?.points.map((point) => point.link)).toEqual(['1ms@1Gb/s'])
  expect(distance?.points[0]?.pingMs).toBeGreaterThan(0.8) // timers may be early by a little
  const samples = result.series.flatMap((one) => one.samples)
  expect(samples).toHaveLength(1)
  for (const sample of samples) {
    expect(sample.errors).toEqual({})
    expect(sample.ok).toBeGreaterThan(0)
    expect(sample.perRequest.roundTrips).toBeGreaterThan(0)
  }
})

test('by workers; an interrupt keeps the rounds that are complete', async () => {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = [
    ...['scaling', ...short, '--only=workers', '--workers=2', '--variants=batch'],
    ...['--rounds=1000', '--json', json],
  ]
  const load = await run('cli.ts', { state, args, until: /^Round 2\// })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  const result = await resultIn(json)
  expect(result.interrupted).toBe(true)
  expect(result.series[0]?.points.map((point) => point.workers)).toEqual([2])
  expect(result.series[0]?.samples.length).toBeGreaterThanOrEqual(2)
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
})
