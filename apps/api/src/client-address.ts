import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** `203.0.113.9:40001`, `[2001:db8::1]:443` or `[2001:db8::1]`. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/

/**
 * An entry of `X-Forwarded-For` without the port that some proxies append to the address.
 *
 * @param entry Also the address of the connection itself, which is undefined once it is closed.
 */
export function withoutPort(entry: string | undefined = ''): string {
  const [, ipv6, ipv4] = WITH_PORT.exec(entry) ?? []
  return ipv6 ?? ipv4 ?? entry
}

/**
 * The client's network, for limits by address: an IPv4 address, or the first 64 bits of an IPv6 address,
 * which is what one customer usually has. All spellings of an address give the same network.
 *
 * An entry of `X-Forwarded-For` that is not an address counts as the proxy that sent it. Otherwise a new
 * word in each request would be a new network.
 *
 * @param request `ips` are the addresses that can be trusted, the nearest first; undefined without a
 *   trusted proxy.
 * @returns `unknown` if no address is known, as after the connection was closed.
 */
export function clientNetwork({ ip, ips = [ip] }: Pick<FastifyRequest, 'ip' | 'ips'>): string {
  const address = ips.map((entry) => withoutPort(entry)).findLast((entry) => isIP(entry) !== 0)
  if (address === undefined) return 'unknown'
  // Without its zone: ipaddr.js rejects zones such as %eth0.100. IPv4-mapped IPv6 becomes IPv4.
  const parsed = ipaddr.process(address.replace(/%.*/, ''))
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  const network = parsed.parts.slice(0, 4)
  return network.map((part) => part.toString(16)).join(':')
}
