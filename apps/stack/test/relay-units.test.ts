import { expect, test } from 'vitest'
import { bandwidth, duration, endpoint } from '../src/relay/units.ts'

test.each([
  [duration, '0.271ms', 0.271],
  [duration, '135us', 0.135],
  [duration, '48 ms', 48],
  [duration, '2s', 2_000],
  [bandwidth, '1.8Mb/s', 1.8e6],
  [bandwidth, '64 kb/s', 64_000],
  [bandwidth, 'unlimited', Number.POSITIVE_INFINITY],
  [endpoint, '127.1.2.3:0', { host: '127.1.2.3', port: 0 }],
  [endpoint, '[::1]:7000', { host: '::1', port: 7_000 }],
  [endpoint, 'localhost:7000', { host: 'localhost', port: 7_000 }],
  [endpoint, './a.sock', { path: './a.sock' }],
] as const)('%o parses "%s"', (parse, text, expected) => {
  expect(parse(text)).toEqual(expected)
})

test.each([
  [duration, ['', '5', '1m', '-1ms', '61s'], 'such as 0.271ms'],
  [bandwidth, ['', '0Mb/s', '1MB/s', '1M'], 'such as 1Gb/s'],
  [
    endpoint,
    ['10.0.0.1:80', '0.0.0.0:80', '[::]:80', 'example.org:80'],
    'only serves this machine',
  ],
  [endpoint, ['', '127.0.0.1', '127.0.0.1:65536', '::1:80'], 'It must be host:port or the path'],
] as const)('%o rejects %j', (parse, texts, message) => {
  for (const text of texts) expect(() => parse(text), text).toThrow(message)
})
