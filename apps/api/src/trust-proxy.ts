import { isIP } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import { withoutPort } from './client-address.ts'

/** Whether the proxy at this address is trusted. `hop` 0 is the proxy that connects to the API. */
export type TrustedProxies = (address: string, hop: number) => boolean

/**
 * Parses `TRUST_PROXY`: networks of trusted proxies, or the number of trusted proxies in front of the API. By
 * default no `X-Forwarded-For` is trusted, because any client can send that header.
 *
 * Fastify no longer accepts a number, because then a client that connects directly is trusted too. We do: if
 * only a proxy can connect, as in docker-compose.yml, its address is not known in advance.
 *
 * @throws Error that names the setting.
 */
export function trustedProxies(TRUST_PROXY: string): TrustedProxies | undefined {
  if (TRUST_PROXY === '') return undefined
  if (/^[1-9]$/.test(TRUST_PROXY)) return (_address, hop) => hop < Number(TRUST_PROXY)
  const networks = TRUST_PROXY.split(',').map((network) => network.trim())
  const wrong = networks.find((network) => !isNetwork(network))
  if (wrong !== undefined) {
    throw new Error(
      `TRUST_PROXY must be a number of proxies (1 to 9) or comma-separated networks such as 10.0.0.0/8,::1; ${JSON.stringify(wrong)} is neither`,
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
