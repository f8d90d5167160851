import { hash } from 'node:crypto'

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32

/**
 * HMAC-SHA-256 of texts of `length` Latin-1 characters, as base64url: RFC 2104, with the one-shot `hash`.
 *
 * `createHmac` makes an object for each signature, to be collected later: verifying a token took 2.6 µs
 * of CPU with it, and takes 1.2 (Node 26.10, 2026-11-21). A view costs the API some 20.
 */
export function hmacSha256(secret: string, length: number): (text: string) => string {
  const key = Buffer.alloc(BLOCK_BYTES)
  const bytes = Buffer.from(secret)
  key.set(bytes.length > BLOCK_BYTES ? hash('sha256', bytes, 'buffer') : bytes)
  const inner = Buffer.alloc(BLOCK_BYTES + length)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)
  for (const [index, byte] of key.entries()) {
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  return (text) => {
    inner.write(text, BLOCK_BYTES, 'latin1')
    outer.write(hash('sha256', inner, 'binary'), BLOCK_BYTES, 'latin1')
    return hash('sha256', outer, 'base64url')
  }
}
