import { expect, test } from 'vitest'
import type { Done } from '../src/events.ts'
import { imageOf } from '../src/result/image.ts'
import { resultPage } from '../src/result/page.ts'
import { pngOf } from '../src/service/png.ts'

const lane = (strategy: string, median: number) => ({
  strategy,
  requestsPerSecond: { median, lowest: median - 50, highest: median + 50 },
  p50Ms: 1.5,
  p99Ms: null,
})

const done = {
  id: 'a-1',
  date: '2026-11-24T12:00:00.000Z',
  machine: 'CPU <&">, 2 cores',
  connections: 64,
  distanceMs: 48,
  lanes: [lane('naive', 250), lane('batch', 1_000)],
  ratio: { median: 4, lowest: 3.9, highest: 4.1 },
  sentence: 'batch answered 4.00 times as many page views per second as naive.',
  steps: [],
  disturbed: null,
  command: 'npm run load -- http --variants naive,batch',
} as unknown as Done

test('the image has ratio, rates, latencies, machine and command; bars are proportional', async () => {
  const svg = imageOf(done)
  for (const text of ['× 4', '250 page views/s', '1,000 page views/s', 'p50 1.5 ms, p99 –'])
    expect(svg).toContain(text)
  expect(svg).toContain('64 HTTP connections, Redis 48 ms away, CPU &#60;&#38;&#34;&#62;, 2 cores')
  expect(svg).toContain(done.command)
  const bars = Array.from(svg.matchAll(/class="bar".*? width="([\d.]+)"/g), ([, width]) =>
    Number(width),
  )
  expect(bars).toEqual([270, 1_080])
  const png = Buffer.from(await pngOf(svg))
  expect(png.subarray(1, 4).toString()).toBe('PNG')
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([1_200, 630])
  // Without text it would be much smaller.
  expect(png.length).toBeGreaterThan(20_000)
})

test('the page of a result has a title and an image for previews of links', () => {
  const page = resultPage(done, 'https://shop.example')
  expect(page).toContain('<meta property="og:title" content="× 4: batch and naive">')
  expect(page).toContain(
    '<meta property="og:image" content="https://shop.example/race/a-1/image.png">',
  )
  expect(page).not.toContain('CPU <')
})
