import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '@onetrip/stack/ports.ts'
import { readRecord } from '@onetrip/stack/record.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { runStart } from '@onetrip/stack/testing/programs.ts'
import { expect, test } from 'vitest'
import type { Sample } from '../src/rounds/result.ts'
import { longTimeouts, runLoad } from './support/run.ts'

/** Runs a command that must fail, and returns its output. */
async function refusal(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const state = await temporaryFolder()
  const load = await runLoad({ state, args, until: /./, env })
  expect(await load.exited).toMatchObject({ code: 1 })
  return load.output.join('\n')
}

test('--url measures running APIs, by the variants that they report', async () => {
  const [pooled, naive, redis] = await freePorts(3)
  const args = [`--port=${pooled}`, `--naive-port=${naive}`, `--redis-port=${redis}`]
  const state = await temporaryFolder()
  await runStart({ state, args, env: longTimeouts, until: /^\s*Stop / })
  const record = await readRecord(join(state, 'run', 'stack.json'))
  const url = new URL(record?.redis.url ?? '')
  const password = join(state, 'password')
  await writeFile(password, url.password)
  const urls = record?.apis.map((api) => api.url).reverse() ?? []
  const json = join(state, 'results.json')
  const load = await runLoad({
    state: await temporaryFolder(),
    args: ['--url', urls.join(','), '--json', json, ...shortRun],
    until: /All samples are in/,
    env: { REDIS_URL: `redis://operator@${url.host}`, REDIS_PASSWORD_FILE: password },
  })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  const { software, samples } = JSON.parse(await readFile(json, 'utf8'))
  expect(software.Stack).toBe('--url')
  const variants = samples.map((sample: Sample) => sample.case.variant)
  expect(variants).toEqual(record?.apis.map(({ variant }) => variant).reverse())
  expect(load.output.join('\n')).not.toContain(url.password)
  const popular = await fetch(`${urls[0]}/items/popular?limit=100`)
  expect(await popular.json()).toEqual({ items: [] })
})

const shortRun = ['--duration=0.5', '--rounds=1', '--warmup=0.5', '--connections=4', '--sessions=4']

test('--url rejects another machine without --i-own-this-host', async () => {
  const url = 'http://192.0.2.1:3000' // reserved for documentation (RFC 5737)
  const text = await refusal(['--url', url], { REDIS_URL: 'redis://127.0.0.1:1' })
  expect(text).toContain(`${url} is not this machine`)
  expect(text).toContain('--i-own-this-host')
})

test('--url needs REDIS_URL and an API that reports its metrics', async () => {
  expect(await refusal(['--url', 'http://127.0.0.1:1'])).toContain('--url needs REDIS_URL')
  const [nobody] = await freePorts(1)
  const env = { REDIS_URL: `redis://me:secret@127.0.0.1:${nobody}` }
  const text = await refusal(['--url', `http://127.0.0.1:${nobody}`], env)
  expect(text).toContain('does not report its metrics')
  expect(text).not.toContain('secret')
})
