import { networkInterfaces } from 'node:os'
import { listeningSockets } from '@onetrip/stack/processes.ts'

// 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/8 in the format of /proc/net/tcp and tcp6.
const LOOPBACK = /^(.{6}7F|0{24}01000000|0{16}FFFF0000.{6}7F):/

/**
 * Listening TCP sockets outside loopback that belong to a Docker engine or to no visible process, as
 * `address:port` in hexadecimal. Empty without /proc: there, containers run in a virtual machine.
 */
export async function engineListeners(): Promise<Set<string>> {
  const found = new Set<string>()
  for (const { address, holders } of await listeningSockets()) {
    if (LOOPBACK.test(address)) continue
    const ofEngine = holders.some(({ program }) => /docker|containerd|rootless|slirp/.test(program))
    if (holders.length === 0 || ofEngine) found.add(address)
  }
  return found
}

/** The addresses of this machine that are not loopback. */
export function outsideAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
}
