import { expect, test } from 'vitest'
import { isCrossSite, originsOf } from '../../src/web/cross-site.ts'

const trusted = originsOf(['https://SHOP.example:443'])
const host = 'api.example:8080'

test.each([
  // Clients that are not browsers.
  [false, 'POST', {}],
  // Current browsers.
  [false, 'POST', { 'sec-fetch-site': 'same-origin', origin: 'http://api.example:8080' }],
  [false, 'POST', { 'sec-fetch-site': 'none' }],
  [true, 'POST', { 'sec-fetch-site': 'same-site', origin: 'http://www.example' }],
  [true, 'POST', { 'sec-fetch-site': 'cross-site', origin: 'http://evil.example' }],
  [true, 'POST', { 'sec-fetch-site': 'same-origin, cross-site' }],
  [false, 'POST', { 'sec-fetch-site': 'cross-site', origin: 'https://shop.example' }],
  // Browsers that send only Origin.
  [false, 'POST', { origin: 'http://api.example:8080' }],
  [true, 'POST', { origin: 'http://api.example' }],
  [true, 'POST', { origin: 'http://evil.example' }],
  [true, 'POST', { origin: 'null' }],
  [true, 'POST', { origin: '' }],
  [true, 'POST', { origin: 'http://api.example:8080', host: undefined }],
  [false, 'POST', { origin: 'https://api.example', host: undefined, ':authority': 'api.example' }],
  // All methods except GET and HEAD.
  [true, 'PUT', { origin: 'http://evil.example' }],
  [true, 'DELETE', { origin: 'http://evil.example' }],
  [false, 'GET', { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }],
  [false, 'HEAD', { origin: 'http://evil.example' }],
])('cross-site: %s for %s with %o', (expected, method, headers) => {
  expect(isCrossSite({ method, headers: { host, ...headers } }, trusted)).toBe(expected)
})

test.each(['shop.example', 'https://shop.example/path', 'https://a@shop.example', '*', 'null', ''])(
  '%o is not an origin',
  (origin) =>
    expect(() => originsOf([origin])).toThrow(`publicOrigins: ${origin} is not an origin`),
)
