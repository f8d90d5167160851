import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hmacSha256 } from '../src/hmac.ts'

const asNode = (secret: string, text: string) =>
  createHmac('sha256', secret).update(text, 'latin1').digest('base64url')

test('RFC 4231, test cases 2 and 6', () => {
  const of = (secret: string, text: string) =>
    Buffer.from(hmacSha256(secret, text.length)(text), 'base64url').toString('hex')
  expect(of('Jefe', 'what do ya want for nothing?')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
  const text = 'Test Using Larger Than Block-Size Key - Hash Key First'
  // The key of that case is no text in UTF-8, so what Node makes of one as long stands in.
  expect(hmacSha256('a'.repeat(131), text.length)(text)).toBe(asNode('a'.repeat(131), text))
})

test('is what Node says, whatever the secret and the text', () => {
  const latin1 = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1'))
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), latin1, latin1, (secret, one, other) => {
      const sign = hmacSha256(secret, one.length)
      const padded = other.padEnd(one.length, 'x').slice(0, one.length)
      for (const text of [one, padded, one]) expect(sign(text)).toBe(asNode(secret, text))
    }),
  )
})
