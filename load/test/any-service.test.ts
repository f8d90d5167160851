import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { commandLineOf } from '../src/command-line.ts'
import { runLoad } from './support/run.ts'

// A service without our metrics and without Redis, which requires a header.

interface Seen {
  method: string | undefined
  url: string | undefined
  type: string | undefined
  body: string
}

let url: string
const seen = new Map<string, Seen>()

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request
    const chunks = await request.toArray()
    const one = {
      method,
      url,
      type: headers['content-type'],
      body: Buffer.concat(chunks).toString(),
    }
    seen.set(JSON.stringify(one), one)
    response.statusCode = headers.authorization === 'Bearer a-secret' ? 201 : 401
    response.end('made')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return () => server.close()
})
beforeEach(() => seen.clear())

async function load(...args: string[]) {
  const folder = await temporaryFolder()
  const json = join(folder, 'result.json')
  const all = [...args, '--no-report', '--json', json]
  const run = await runLoad({ state: folder, args: all, until: /./ })
  const { code } = await run.exited
  const text = run.output.join('\n')
  const file = await readFile(json, 'utf8').catch(() => '')
  return { code, text, file }
}

const brief = ['--connections=2', '--rounds=1', '--duration=1.2', '--warmup=0']
const secret = ['--header', 'Authorization: Bearer a-secret']

test.for(['http', 'latency'] as const)('%s sends the requests given by options', async (name) => {
  const type = ['--header', 'content-type: text/x-order']
  const request = [
    '--url',
    `${url}/orders?n=1`,
    '--method=PUT',
    ...secret,
    ...type,
    '--body=a-body',
  ]
  const rates = name === 'latency' ? ['--rate=20'] : []
  const { code, text, file } = await load(name, ...brief, ...request, ...rates)
  expect([code, text]).toEqual([0, expect.stringContaining(`${url}/orders?n=1`)])
  const asked = { method: 'PUT', url: '/orders?n=1', type: 'text/x-order', body: 'a-body' }
  expect([...seen.values()]).toEqual([asked])
  expect(text).not.toMatch(/Redis|CPU µs \/request.*API/)
  const { samples, options, command } = JSON.parse(file)
  expect(samples[0].errors).toBeUndefined()
  expect(samples[0].values[name === 'http' ? 'requestsPerSecond' : 'due']).toBeGreaterThan(0)
  expect(options).toMatchObject({ header: ['authorization', 'content-type'], body: '6 bytes' })
  expect(command).toContain("--method=PUT --header 'Authorization: …' --header 'content-type: …'")
  expect(`${text}${file}`).not.toMatch(/a-secret|a-body/)
})

test('a crossed threshold sets the exit code', async () => {
  const request = ['--url', `${url}/`, '--method=GET', ...secret, ...brief]
  const met = await load(...request, '--threshold=errors=0', '--threshold', 'p99<10000')
  expect(met).toMatchObject({
    code: 0,
    text: expect.stringContaining('Of 2 thresholds, none crossed'),
  })
  expect(JSON.parse(met.file).thresholds).toEqual(['errors=0', 'p99<10000'])
  const crossed = await load(...request, '--threshold=errors=0', '--threshold', 'p99<0.001')
  expect(crossed).toMatchObject({
    code: 4,
    text: expect.stringMatching(/Of 2 thresholds, 1 crossed.*p99<0\.001 .* crossed/s),
  })
})

test.for([
  ['a request that fails', ['/orders'], /GET .*\/orders was answered with 401\. Only 2xx/],
  [
    'our workload',
    ['/orders', '--reads=0.5'],
    /--workload, --sessions, --items and --reads have no effect/,
  ],
  ['a bad header', ['/', '--header=x'], /--header.*such as 'accept: text\/html'/],
  ['a threshold for no case', ['/', ...secret, '--threshold', 'x:p99<5'], /matches no case/],
  [
    'an unknown metric',
    ['/', '--threshold', 'p98<5'],
    /http has no metric "p98"\. Its metrics are/,
  ],
  ['a percentage as a threshold', ['/', '--threshold=10'], /is not a threshold such as 'p99<5'/],
  ['no path and no method', ['/'], /For any other HTTP service, add --method GET/],
] as const)('rejects %s', async ([, [path, ...args], message]) => {
  const { code, text } = await load('--url', `${url}${path}`, ...args)
  expect([code, text]).toEqual([1, expect.stringMatching(message)])
})

test('rejects another machine, and a password in the URL', async () => {
  const other = await load('--url=http://192.0.2.1/x')
  expect(other).toMatchObject({ code: 1, text: expect.stringContaining('is not this machine') })
  const password = await load('--url=http://ada:a-secret@127.0.0.1/x')
  expect(password).toMatchObject({ code: 1, text: expect.stringContaining('Use a header') })
  expect(password.text).not.toContain('a-secret')
})

test('the command line is quoted for a shell and has no credentials', () => {
  const args = [
    '--threshold',
    'p99<5',
    "it's",
    '--header=x: secret',
    '--body',
    'secret',
    '--json',
    'a',
  ]
  expect(commandLineOf('load', args)).toBe(
    String.raw`load --threshold 'p99<5' 'it'\''s' '--header=x: …' --body … --json a`,
  )
})
