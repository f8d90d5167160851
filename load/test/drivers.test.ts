import { expect, test } from 'vitest'
import { linkNames, links } from '../src/drivers/redis/links.ts'
import { parseCsv } from '../src/drivers/redis/redis-benchmark.ts'

// What the drivers read from options, from the output of other programs and from the kernel.

test('redis-benchmark --csv has a rate and latencies', () => {
  const header = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms"'
  const head = `${header},"p99_latency_ms","max_latency_ms"\n`
  const csv = `${head}"MGET a,b","21682.57","0.043","0.008","0.047","0.055","0.071","4.055"\n`
  expect(parseCsv(csv)).toEqual({ perSecond: 21_682.57, p50: 0.047, p99: 0.071, max: 4.055 })
  for (const text of ['', `${head}"GET","-nan"`]) expect(() => parseCsv(text)).toThrow('no figures')
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
