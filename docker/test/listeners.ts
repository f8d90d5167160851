import { readdir, readFile, readlink } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'

const LISTEN = '0A'
// As /proc/net/tcp and tcp6 write addresses: 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/8.
const LOOPBACK = /^(.{6}7F|0{24}01000000|0{16}FFFF0000.{6}7F):/

/**
 * Listening TCP sockets outside loopback that belong to a Docker engine or to nobody who can be seen,
 * as `address:port` in hexadecimal. Empty where there is no /proc: there, containers are elsewhere.
 */
export async function engineListeners(): Promise<Set<string>> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  const owners = await socketOwners()
  const found = new Set<string>()
  for (const line of tables.join('\n').split('\n')) {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
    if (state !== LISTEN || LOOPBACK.test(local)) continue
    const owner = owners.get(inode) ?? ''
    if (owner === '' || /docker|containerd|rootless|slirp/.test(owner)) found.add(local)
  }
  return found
}

/** The name of the process that has each socket, by the socket's inode. */
async function socketOwners(): Promise<Map<string, string>> {
  const owners = new Map<string, string>()
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    try {
      const name = (await readFile(`/proc/${pid}/comm`, 'utf8')).trim()
      for (const descriptor of await readdir(`/proc/${pid}/fd`)) {
        const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
        const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
        if (inode) owners.set(inode, name)
      }
    } catch {
      // It has ended, or is not ours to look at.
    }
  }
  return owners
}

/** The addresses of this machine that are not loopback. */
export function outsideAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
}
