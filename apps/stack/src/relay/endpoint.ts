import type { AddressInfo } from 'node:net'
import { InvalidArgumentError } from 'commander'
import { isLocal } from '../address.ts'

/** Where to listen or connect, as `node:net` takes it. */
export type Endpoint = { path: string } | { host: string; port: number }

/**
 * A parser for commander: the path of a Unix socket (with a slash in it), or `host:port` of this
 * machine, an IPv6 address in brackets.
 *
 * @throws InvalidArgumentError when it is neither, or leads to another machine.
 */
export function endpoint(text: string): Endpoint {
  if (text.includes('/')) return { path: text }
  const [, bracketed, plain, digits = ''] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port > 65_535) {
    throw new InvalidArgumentError(
      'It must be host:port or the path of a Unix socket, such as ./s.',
    )
  }
  if (isLocal(`tcp://${bracketed ? `[${host}]` : host}`)) return { host, port }
  throw new InvalidArgumentError(`The relay only serves this machine; ${host} is no address of it.`)
}

/** The text that `endpoint` takes. */
export function describeEndpoint(at: Endpoint): string {
  if ('path' in at) return at.path
  return `${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`
}

/** What a listening server says of its address. */
export function boundEndpoint(address: AddressInfo | string): Endpoint {
  return typeof address === 'string'
    ? { path: address }
    : { host: address.address, port: address.port }
}
