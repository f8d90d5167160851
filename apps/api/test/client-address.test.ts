import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientNetwork } from '../src/client-address.ts'
import { trustedProxies } from '../src/trust-proxy.ts'

const PROXY = '192.0.2.1'

/** The client network for this entry from a trusted proxy. */
const networkOf = (entry: string) => clientNetwork({ ip: entry, ips: [PROXY, entry] })

test('an IPv6 address with an embedded IPv4 address keeps its network', () => {
  expect(networkOf('2001:db8::192.0.2.1')).toBe('2001:db8:0:0')
})

test.each([
  '',
  'unknown',
  '0203.0.113.9',
  '3405803785',
  '203.0.113.9:400001',
  '[2001:db8::6]443',
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
  fc.assert(
    fc.property(fc.ipV4(), port, fc.boolean(), (dotted, number, upper) => {
      const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
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

test('all spellings of the addresses of a /64 are the same network', () => {
  const group = fc.oneof(fc.constant(0), fc.nat(0xffff))
  const half = fc.tuple(fc.integer({ min: 1, max: 0xffff }), group, group, group)
  const zone = fc.constantFrom('', '%eth0', '%2', '%br-lan')
  fc.assert(
    fc.property(half, half, zone, port, fc.boolean(), (network, host, zoneId, number, upper) => {
      const expected = network.map((part) => part.toString(16)).join(':')
      const full = [...network, ...host].map((part) => part.toString(16).padStart(4, '0')).join(':')
      const short = new URL(`http://[${full}]`).hostname.slice(1, -1) // with `::` for zeros
      for (const text of [full, short].map((one) => (upper ? one.toUpperCase() : one))) {
        expect(networkOf(`${text}${zoneId}`)).toBe(expected)
        if (number !== null) expect(networkOf(`[${text}${zoneId}]:${number}`)).toBe(expected)
      }
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
  const others = ['11.1.2.3:80', '[2001:db9::1]:443', 'x', '']
  for (const address of others) expect(trusts?.(address, 0), address).toBe(false)
})
