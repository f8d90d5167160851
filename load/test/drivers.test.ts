import { expect, test } from 'vitest'
import { linkNames, links } from '../src/drivers/redis/links.ts'
import { parseCsv } from '../src/drivers/redis/redis-benchmark.ts'
import { timeWaitIn } from '../src/experiments/ports/network.ts'
import { callAtRate } from '../src/experiments/ports/run.ts'

// What the drivers read from options, from the output of other programs and from the kernel.

test('redis-benchmark --csv has a rate and latencies', () => {
  const header = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms"'
  const head = `${header},"p99_latency_ms","max_latency_ms"\n`
  const csv = `${head}"MGET a,b","21682.57","0.043","0.008","0.047","0.055","0.071","4.055"\n`
  expect(parseCsv(csv)).toEqual({ perSecond: 21_682.57, p50: 0.047, p99: 0.071, max: 4.055 })
  for (const text of ['', `${head}"GET","-nan"`]) expect(() => parseCsv(text)).toThrow('no figures')
})

test('connections in TIME_WAIT are counted by the side whose port waits', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000
   1: 0100007F:1E61 0100007F:4E20 06 00000000:00000000
   2: 0100007F:4E21 0100007F:1E61 06 00000000:00000000
   3: 0100007F:4E23 0100007F:1E61 01 00000000:00000000
   4: 0100007F:4E24 0100007F:1E62 06 00000000:00000000`
  expect(timeWaitIn(table, 0x1e61)).toEqual({ all: 3, clients: 1, server: 1 })
})

test('calls begin at a steady rate, up to a maximum in flight', async () => {
  const pace = { perSecond: 500, seconds: 0.2, atOnce: 3, signal: new AbortController().signal }
  let calls = 0
  await callAtRate(async () => void calls++, pace)
  expect(calls).toBeGreaterThan(3)
  expect(calls).toBeLessThanOrEqual(100)
  let open = 0
  let most = 0
  await callAtRate(async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setTimeout(resolve, 50))
    open--
  }, pace)
  expect(most).toBe(3)
})

test('a link is one of the articles, or has any round trip time and bandwidth', () => {
  expect(links(linkNames.join(',')).map(({ distant }) => distant)).toEqual([
    null,
    null,
    { roundTripMs: 0.271, rate: '1Gb/s' },
    { roundTripMs: 48, rate: '1.8Mb/s' },
  ])
  const distant = { roundTripMs: 5, rate: '100Mb/s' }
  expect(links('5ms@100Mb/s')).toEqual([{ name: '5ms@100Mb/s', distant }])
})

test.each([
  ['', 'is no link. Use unix, loopback, switch, vpn'],
  ['lan', 'is no link. Use unix, loopback, switch, vpn'],
  ['unix,unix', 'only once'],
  ['5@1Gb/s', 'a time such as'],
  ['5ms@fast', 'a bandwidth such as'],
])('rejects the link "%s"', (text, why) => expect(() => links(text)).toThrow(why))
