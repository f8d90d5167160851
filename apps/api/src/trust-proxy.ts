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
  let trusts: ReturnType<typeof proxyAddr.compile>
  try {
    if (/^\d+$/.test(TRUST_PROXY)) throw new Error(`${TRUST_PROXY} is out of range`)
    trusts = proxyAddr.compile(TRUST_PROXY.split(',').map((network) => network.trim()))
  } catch (error) {
    throw new Error(
      `TRUST_PROXY must be a number of proxies (1 to 9) or comma-separated networks such as 10.0.0.0/8,::1: ${(error as Error).message}`,
    )
  }
  return (address, hop) => trusts(withoutPort(address), hop)
}
