import type { Server } from 'node:net'
import { InvalidArgumentError } from 'commander'
import { isLocal } from '../address.ts'

// Parsers for commander, which prints their errors after the name of the option.

const milliseconds: Record<string, number> = { us: 0.001, µs: 0.001, ms: 1, s: 1_000 }
const bits: Record<string, number> = { 'b/s': 1, 'kb/s': 1e3, 'Mb/s': 1e6, 'Gb/s': 1e9 }

/** Parses a decimal number with one of the units; NaN for any other text. */
function quantity(text: string, units: Record<string, number>): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?) ?(\D+)$/.exec(text.trim()) ?? []
  return Number(amount) * (units[unit] ?? Number.NaN)
}

/** Parses a time up to a minute, such as `0.271ms`, `135us` or `2s`, into milliseconds. */
export function duration(text: string): number {
  const value = quantity(text, milliseconds)
  if (value <= 60_000) return value
  throw new InvalidArgumentError('It must be a time such as 0.271ms, 135us or 2s, up to 60s.')
}

/** Parses a bandwidth such as `1.8Mb/s` into bits per second; Infinity for `unlimited`. */
export function bandwidth(text: string): number {
  if (text.trim() === 'unlimited') return Number.POSITIVE_INFINITY
  const value = quantity(text, bits)
  if (value > 0) return value
  throw new InvalidArgumentError('It must be a bandwidth such as 1Gb/s, 1.8Mb/s or "unlimited".')
}

/** An address to listen on or connect to, in the format of `node:net`. */
export type Endpoint = { path: string } | { host: string; port: number }

/**
 * Parses the path of a Unix socket (must contain a slash), or `host:port`, with IPv6 addresses in brackets. Rejects
 * addresses of other machines.
 */
export function endpoint(text: string): Endpoint {
  if (text.includes('/')) return { path: text }
  const [, bracketed, plain, digits = ''] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port > 65_535) {
    throw new InvalidArgumentError('It must be host:port or the path of a Unix socket, as in ./s.')
  }
  if (isLocal(`tcp://${text}`)) return { host, port }
  throw new InvalidArgumentError(`The relay only serves this machine; ${host} is another host.`)
}

/** The address on which a server listens, in the format that `endpoint` parses. */
export function addressOf(server: Server): string {
  const at = server.address()
  if (at === null || typeof at === 'string') return at ?? ''
  return `${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
}
