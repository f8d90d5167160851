import { expect, test } from 'vitest'
import { bandwidth, duration, endpoint } from '../src/relay/units.ts'

test.each([
  ['0.271ms', 0.271],
  ['135us', 0.135],
  ['135µs', 0.135],
  ['48 ms', 48],
  ['2s', 2_000],
  ['0ms', 0],
])('a time: %s', (text, milliseconds) => expect(duration(text)).toBeCloseTo(milliseconds, 9))

test.each(['', '5', '1m', '-1ms', '1e3ms', '61s', 'ms'])('not a time: "%s"', (text) =>
  expect(() => duration(text)).toThrow('such as 0.271ms'),
)

test.each([
  ['1Gb/s', 1e9],
  ['1.8Mb/s', 1.8e6],
  ['64 kb/s', 64_000],
  ['300b/s', 300],
  ['unlimited', Number.POSITIVE_INFINITY],
])('a bandwidth: %s', (text, bitsPerSecond) => expect(bandwidth(text)).toBe(bitsPerSecond))

test.each(['', '0Mb/s', '1MB/s', '1M', '1 Tb/s', '-1Gb/s'])('not a bandwidth: "%s"', (text) =>
  expect(() => bandwidth(text)).toThrow('such as 1Gb/s'),
)

test.each([
  ['127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
  ['127.1.2.3:0', { host: '127.1.2.3', port: 0 }],
  ['[::1]:7000', { host: '::1', port: 7_000 }],
  ['localhost:7000', { host: 'localhost', port: 7_000 }],
  ['/run/a.sock', { path: '/run/a.sock' }],
  ['./a.sock', { path: './a.sock' }],
])('an address: %s', (text, expected) => expect(endpoint(text)).toEqual(expected))

test.each(['10.0.0.1:80', '0.0.0.0:80', '[::]:80', 'example.org:80', '[fe80::1]:80'])(
  'rejects the address of another machine: %s',
  (text) => expect(() => endpoint(text)).toThrow('only serves this machine'),
)

test.each(['', '127.0.0.1', ':80', '127.0.0.1:x', '127.0.0.1:65536', '::1:80'])(
  'not an address: "%s"',
  (text) => expect(() => endpoint(text)).toThrow('It must be host:port or the path'),
)
