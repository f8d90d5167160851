import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientNetwork } from '../src/client-address.ts'
import { trustedProxies } from '../src/trust-proxy.ts'

const PROXY = '192.0.2.1'

/** The client network for this entry from a trusted proxy. */
const networkOf = (entry: string) => clientNetwork({ ip: entry, ips: [PROXY, entry] })

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['203.0.113.9:40001', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:203.0.113.9', '203.0.113.9'],
  ['::ffff:cb00:7109', '203.0.113.9'],
  ['0:0:0:0:0:ffff:cb00:7109', '203.0.113.9'],
  ['[::ffff:203.0.113.9]:40001', '203.0.113.9'],
  ['[::ffff:cb00:7109]:40001', '203.0.113.9'],
  ['::1', '0:0:0:0'],
  ['1::', '1:0:0:0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['2001:DB8::6', '2001:db8:0:0'],
  ['2001:0db8:0000::6', '2001:db8:0:0'],
  ['2001:db8::192.0.2.1', '2001:db8:0:0'],
  ['[2001:db8::6]', '2001:db8:0:0'],
  ['[2001:db8::6]:443', '2001:db8:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['[fe80::1%eth0]:443', 'fe80:0:0:0'],
  ['fe80::1%eth0.100', 'fe80:0:0:0'],
  ['fe80::1%br-lan', 'fe80:0:0:0'],
])('%s counts as %s', (entry, network) => {
  expect(networkOf(entry)).toBe(network)
})

test.each([
  '',
  'unknown',
  '_hidden',
  '203.0.113',
  '203.0.113.256',
  '0203.0.113.9',
  '0xcb.0.113.9',
  '3405803785',
  '203.0.113.9:',
  '203.0.113.9:port',
  '203.0.113.9:400001',
  '[203.0.113.9',
  '[2001:db8::6]:',
  '[2001:db8::6]443',
  '2001:db8::6::',
  '"203.0.113.9"',
  '203.0.113.9 203.0.113.10',
])('%j is not an address and counts as the proxy that sent it', (entry) => {
  expect(networkOf(entry)).toBe(PROXY)
})

test('without a trusted proxy, the address of the connection counts', () => {
  expect(clientNetwork({ ip: '::ffff:203.0.113.9' } as never)).toBe('203.0.113.9')
  expect(clientNetwork({ ip: undefined } as never)).toBe('unknown')
  expect(clientNetwork({ ip: 'x', ips: [undefined, 'x'] } as never)).toBe('unknown')
})

const port = fc.option(fc.integer({ min: 0, max: 65535 }))

test('all spellings of an IPv4 address are the same network', () => {
  const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
  fc.assert(
    fc.property(octets, port, fc.boolean(), ([a, b, c, d], number, upper) => {
      const dotted = [a, b, c, d].join('.')
      const hex = [a * 256 + b, c * 256 + d].map((part) => part.toString(16)).join(':')
      const mapped = [`::ffff:${dotted}`, `::ffff:${hex}`, `0:0:0:0:0:ffff:${hex}`]
      const spellings = mapped.map((text) => (upper ? text.toUpperCase() : text))
      for (const text of spellings) expect(networkOf(text)).toBe(dotted)
      if (number === null) return
      expect(networkOf(`${dotted}:${number}`)).toBe(dotted)
      for (const text of spellings) expect(networkOf(`[${text}]:${number}`)).toBe(dotted)
    }),
  )
})

/** A spelling of these eight groups: with or without padding, upper case and `::`. */
const spelling = (groups: readonly number[]) =>
  fc
    .record({ width: fc.constantFrom(1, 4), upper: fc.boolean(), short: fc.boolean() })
    .map((how) => {
      const { width, upper, short } = how
      const words = groups.map((group) => group.toString(16).padStart(width, '0'))
      const from = groups.indexOf(0)
      const after = groups.findIndex((group, index) => index > from && group !== 0)
      const to = after < 0 ? 8 : after
      const text =
        short && from >= 0
          ? `${words.slice(0, from).join(':')}::${words.slice(to).join(':')}`
          : words.join(':')
      return upper ? text.toUpperCase() : text
    })

test('all spellings of the addresses of a /64 are the same network', () => {
  const group = fc.oneof(fc.constant(0), fc.nat(0xffff))
  const half = fc.tuple(group, group, group, group)
  const zone = fc.constantFrom('', '%eth0', '%2', '%br-lan', '%eth0.100')
  // Addresses that begin with ::ffff: are IPv4 addresses.
  const mapped = (groups: number[]) =>
    groups.slice(0, 5).every((part) => part === 0) && groups[5] === 0xffff
  const cases = fc
    .tuple(half, half)
    .filter(([network, host]) => !mapped([...network, ...host]))
    .chain(([network, host]) =>
      fc.tuple(fc.constant(network), spelling([...network, ...host]), zone, port),
    )
  fc.assert(
    fc.property(cases, ([network, text, zoneId, number]) => {
      const expected = network.map((part) => part.toString(16)).join(':')
      expect(networkOf(`${text}${zoneId}`)).toBe(expected)
      if (number !== null) expect(networkOf(`[${text}${zoneId}]:${number}`)).toBe(expected)
    }),
  )
})

test('an entry that is not an address is never a network', () => {
  const entry = fc.string({ unit: fc.constantFrom(...'0123456789abcdef::..[]% x'), maxLength: 50 })
  fc.assert(
    fc.property(entry, (text) => {
      expect(networkOf(text)).toMatch(/^(\d{1,3}(\.\d{1,3}){3}|[\da-f]{1,4}(:[\da-f]{1,4}){3})$/)
    }),
  )
})

test('a trusted proxy is recognized with and without its port', () => {
  const trusts = trustedProxies('10.0.0.0/8,2001:db8::/32')
  const trusted = ['10.1.2.3', '10.1.2.3:80', '::ffff:10.1.2.3', '[2001:db8::1]:443']
  for (const address of trusted) expect(trusts?.(address, 0), address).toBe(true)
  const others = ['11.1.2.3', '11.1.2.3:80', '[2001:db9::1]:443', 'x', '']
  for (const address of others) expect(trusts?.(address, 0), address).toBe(false)
  expect(trusts?.(undefined as never, 0)).toBe(false)
})
