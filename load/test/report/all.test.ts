import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '@onetrip/stack/problem.ts'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { afterEach, expect, test, vi } from 'vitest'
import type { AllPart } from '../../src/all/parts.ts'
import { runAll } from '../../src/all/run.ts'
import { prepareOutputs, type ResultDocument } from '../../src/report/outputs.ts'
import { renderHtml, renderMarkdown } from '../../src/report/render.ts'
import { httpResult } from '../support/http-results.ts'
import { experimentResult, scalingResult } from './support/results.ts'

afterEach(() => void vi.unstubAllEnvs())

const http = httpResult({ naive: [3_000], batch: [40_000] })

/** A part that ends as the commands do: with `outputs.save`. */
function part(name: string, result: ResultDocument, then: () => void = () => {}): AllPart {
  return {
    name,
    seconds: { quick: 10, usual: 20, full: name === 'http' ? 30 : null },
    async run({ outputs }) {
      await (await prepareOutputs(outputs)).save(result)
      then()
    },
  }
}

async function run(parts: AllPart[], options: object = {}, signal = new AbortController().signal) {
  const json = join(await temporaryFolder(), 'all.json')
  const outcome = await runAll({ json, ...options }, 'npm run load -- all', signal, parts).catch(
    (error: unknown) => error,
  )
  const text = await readFile(json, 'utf8').catch(() => 'null')
  return { outcome, result: JSON.parse(text), json }
}

const formatsOf = ({ parts }: { parts: ResultDocument[] }) => parts.map(({ format }) => format)

test('every part is in the one file, in order, and in the one page', async () => {
  const parts = [part('http', http), part('scaling', scalingResult())]
  const html = join(await temporaryFolder(), 'all.html')
  const { outcome, result } = await run(parts, { html })
  expect(outcome).toBeUndefined()
  expect(result).toMatchObject({ format: 'onetrip-load-all/1', interrupted: false, failures: [] })
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3', 'onetrip-load-scaling/1'])
  const page = await readFile(html, 'utf8')
  expect(page.match(/<h2>.*?<\/h2>/g)?.slice(0, 2)).toEqual([
    '<h2>Page views over HTTP, at full speed</h2>',
    '<h2>Scaling: connections, API processes, distance to Redis</h2>',
  ])
})

test('a preset leaves parts out, unless they are named', async () => {
  const parts = [part('http', http), part('info', experimentResult())]
  expect(formatsOf((await run(parts, { full: true })).result)).toEqual(['onetrip-load-http/3'])
  const named = await run(parts, { full: true, parts: ['info'] })
  expect(formatsOf(named.result)).toEqual(['onetrip-load-redis/1'])
})

test('a part that fails is told at the end, and the others are measured', async () => {
  const fail = () => {
    throw new Problem('wrk is not installed')
  }
  const broken: AllPart = { ...part('latency', http), run: async () => fail() }
  const { outcome, result } = await run([broken, part('http', http)])
  expect(outcome).toBeInstanceOf(Problem)
  expect((outcome as Problem).message).toBe(
    'Not measured to the end: latency (wrk is not installed)',
  )
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3'])
  expect(result.failures).toEqual([{ part: 'latency', message: 'wrk is not installed' }])
  const named = [{ name: 'all', document: result }]
  expect(await renderHtml(named)).toContain('Not measured: latency (wrk is not installed).')
  expect(renderMarkdown(named)).toMatch(/^Not measured: latency/)
})

test('a part is on the disk before the next one begins, as of a run that was ended early', async () => {
  const json = join(await temporaryFolder(), 'all.json')
  let during: unknown
  const second: AllPart = {
    ...part('scaling', scalingResult()),
    async run({ outputs }) {
      during = JSON.parse(await readFile(json, 'utf8'))
      await (await prepareOutputs(outputs)).save(scalingResult())
    },
  }
  const { result } = await run([part('http', http), second], { json })
  expect(during).toMatchObject({ interrupted: true, parts: [{ format: 'onetrip-load-http/3' }] })
  expect(renderMarkdown([{ name: 'all', document: during }])).toMatch(/^This run was interrupted/)
  expect(result).toBeNull() // which is another file
  expect(JSON.parse(await readFile(json, 'utf8'))).toMatchObject({ interrupted: false })
  expect(await filesIn(join(json, '..'))).toEqual(['all.json'])
})

test('without --json the parts are kept beside the latest report', async () => {
  const state = await temporaryFolder()
  for (const [name, value] of Object.entries({ ONETRIP_STATE: state, ONETRIP_REPORT: '' })) {
    vi.stubEnv(name, value)
  }
  const signal = new AbortController().signal
  const killed = new Error('killed')
  const unending: AllPart = { ...part('latency', http), run: () => Promise.reject(killed) }
  const options = { report: true }
  await runAll(options, 'npm run load -- all', signal, [part('http', http), unending]).catch(
    () => {},
  )
  const kept = JSON.parse(await readFile(join(state, 'report', 'all.json'), 'utf8'))
  expect(formatsOf(kept)).toEqual(['onetrip-load-http/3'])
})

test('a part that fails after some rounds is told, and its rounds are kept', async () => {
  const failing = part('http', http, () => {
    throw new Problem('Redis ended by itself')
  })
  const { outcome, result } = await run([failing])
  expect((outcome as Problem).message).toContain('to the end: http (Redis ended by itself)')
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3'])
  const named = [{ name: 'all', document: result }]
  expect(renderMarkdown(named)).toMatch(/^Not measured to the end: http/)
})

test('an interrupt keeps the parts that are complete', async () => {
  const interrupt = new AbortController()
  const stop = () => {
    interrupt.abort(new Error('interrupted'))
    throw new Error('interrupted')
  }
  const during: AllPart = { ...part('latency', http), run: async () => stop() }
  const parts = [part('http', http), during, part('info', experimentResult())]
  const { outcome, result } = await run(parts, {}, interrupt.signal)
  expect(outcome).toBeUndefined()
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3'])
  expect(result).toMatchObject({ interrupted: true, failures: [] })
})

test('an interrupt before anything is complete leaves no file', async () => {
  const interrupt = new AbortController()
  interrupt.abort(new Error('interrupted'))
  const { outcome, json } = await run([part('http', http)], {}, interrupt.signal)
  expect(outcome).toMatchObject({ message: 'interrupted' })
  expect(await filesIn(join(json, '..'))).toEqual([])
})
