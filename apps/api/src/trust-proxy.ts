import { isIP } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import { withoutPort } from './client-address.ts'

/** Whether to believe the proxy of this address, the nearest of them being number 0. */
export type TrustedProxies = (address: string, hop: number) => boolean

/**
 * Whose `X-Forwarded-For` is believed: that of proxies in these networks, or of so many in a row.
 * Nobody's by default, for any client can send that header.
 *
 * Fastify takes no number any more, since a client that connects directly would be believed as well.
 * It is offered nevertheless: where only a proxy can connect, as in docker-compose.yml, its address is
 * not known beforehand.
 *
 * @throws Error that names the variable.
 */
export function trustedProxies(TRUST_PROXY: string): TrustedProxies | undefined {
  if (TRUST_PROXY === '') return undefined
  if (/^[1-9]$/.test(TRUST_PROXY)) return (_address, hop) => hop < Number(TRUST_PROXY)
  const networks = TRUST_PROXY.split(',').map((network) => network.trim())
  const wrong = networks.find((network) => !isNetwork(network))
  if (wrong !== undefined) {
    throw new Error(
      `TRUST_PROXY must be a number of proxies (1 to 9) or networks as 10.0.0.0/8,::1, comma separated; ${JSON.stringify(wrong)} is neither`,
    )
  }
  const trusts = proxyAddr.compile(networks)
  return (address, hop) => trusts(withoutPort(address), hop)
}

function isNetwork(text: string): boolean {
  const [address = '', prefix = '1', ...more] = text.split('/')
  const bits = { 4: 32, 6: 128 }[isIP(address)] ?? 0
  return (
    more.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) > 0 && Number(prefix) <= bits
  )
}
