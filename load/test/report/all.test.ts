import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AllPart } from '../../src/all/parts.ts'
import { runAll } from '../../src/all/run.ts'
import { Problem } from '../../src/problem.ts'
import { prepareOutputs, type ResultDocument } from '../../src/report/outputs.ts'
import { renderHtml, renderMarkdown } from '../../src/report/render.ts'
import { httpResult } from '../support/http-results.ts'
import { filesIn, temporaryFolder } from '../support/places.ts'
import { experimentResult, latencyResult } from './support/results.ts'

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
  const parts = [part('http', http), part('latency', latencyResult())]
  const html = join(await temporaryFolder(), 'all.html')
  const { outcome, result } = await run(parts, { html })
  expect(outcome).toBeUndefined()
  expect(result).toMatchObject({ format: 'onetrip-load-all/1', interrupted: false, failures: [] })
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3', 'onetrip-load-latency/1'])
  const page = await readFile(html, 'utf8')
  expect(page.match(/<h2>.*?<\/h2>/g)?.slice(0, 2)).toEqual([
    '<h2>Page views over HTTP, at full speed</h2>',
    '<h2>Latency at a fixed rate</h2>',
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
  expect((outcome as Problem).message).toBe('Not measured: latency (wrk is not installed)')
  expect(formatsOf(result)).toEqual(['onetrip-load-http/3'])
  expect(result.failures).toEqual([{ part: 'latency', message: 'wrk is not installed' }])
  const named = [{ name: 'all', document: result }]
  expect(await renderHtml(named)).toContain('Not measured: latency (wrk is not installed).')
  expect(renderMarkdown(named)).toMatch(/^Not measured: latency/)
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
