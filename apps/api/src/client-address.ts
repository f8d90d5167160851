import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** `203.0.113.9:40001`, `[2001:db8::1]:443` or `[2001:db8::1]`. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/

/**
 * Removes the port that some proxies append to an address in `X-Forwarded-For`.
 *
 * @param entry Undefined for the address of a connection that is closed.
 */
export function withoutPort(entry: string | undefined = ''): string {
  const [, ipv6, ipv4] = WITH_PORT.exec(entry) ?? []
  return ipv6 ?? ipv4 ?? entry
}

/**
 * The client's network, for limits by address: an IPv4 address, or the first 64 bits of an IPv6 address (one
 * customer usually has a /64 network). All spellings of an address give the same network.
 *
 * An entry of `X-Forwarded-For` that is not an address counts as the proxy that sent it. Otherwise a client
 * could evade a limit by sending different words.
 *
 * @param request `ips` are the trusted addresses, nearest first; undefined without a trusted proxy.
 * @returns `unknown` if no address is known, for example after the connection was closed.
 */
export function clientNetwork({ ip, ips = [ip] }: Pick<FastifyRequest, 'ip' | 'ips'>): string {
  const address = ips.map((entry) => withoutPort(entry)).findLast((entry) => isIP(entry) !== 0)
  if (address === undefined) return 'unknown'
  // Without the zone: ipaddr.js rejects zones such as %eth0.100. IPv4-mapped IPv6 becomes IPv4.
  const parsed = ipaddr.process(address.replace(/%.*/, ''))
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  const network = parsed.parts.slice(0, 4)
  return network.map((part) => part.toString(16)).join(':')
}
