import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/** Whether a process runs. A zombie, which has ended and waits for its parent to notice, does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function isZombie(pid: number): boolean {
  try {
    // The state follows the name, which is in brackets and may contain some itself.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] === 'Z'
  } catch {
    return false // no /proc here, or it is gone by now
  }
}

/** A process, and the name of the program that it runs. */
export interface Holder {
  pid: number
  program: string
}

/** A TCP socket that listens: its address as /proc/net/tcp writes it (`0100007F:0BB8`). */
export interface ListeningSocket {
  address: string
  inode: string
}

const LISTEN = '0A'

/** All TCP sockets that listen on this machine. Empty where there is no /proc (not Linux). */
export async function listeningSockets(): Promise<ListeningSocket[]> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  return tables
    .flatMap((table) => table.split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTEN)
    .map((fields) => ({ address: fields[1] ?? '', inode: fields[9] ?? '' }))
}

/**
 * The processes that have a socket open, by the socket's inode. Without privileges, only processes of
 * this user are found.
 */
export async function socketHolders(): Promise<Map<string, Holder[]>> {
  const holders = new Map<string, Holder[]>()
  const names = await readdir('/proc').catch(() => [])
  for (const pid of names.filter((name) => /^\d+$/.test(name))) {
    try {
      const program = basename(await readlink(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '')
      for (const descriptor of await readdir(`/proc/${pid}/fd`)) {
        const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
        const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
        if (inode === undefined) continue
        const others = holders.get(inode) ?? []
        if (!others.some((other) => other.pid === Number(pid))) {
          holders.set(inode, [...others, { pid: Number(pid), program }])
        }
      }
    } catch {
      // It has ended, or this user may not look at it.
    }
  }
  return holders
}

/**
 * The processes that listen on a TCP port of this machine, the lowest id first. None on other systems
 * than Linux, and none of other users.
 */
export async function listenersOn(port: number): Promise<Holder[]> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = (await listeningSockets()).filter(({ address }) => address.endsWith(ending))
  if (sockets.length === 0) return []
  const holders = await socketHolders()
  const found = sockets.flatMap(({ inode }) => holders.get(inode) ?? [])
  return [...new Map(found.map((holder) => [holder.pid, holder])).values()].sort(
    (a, b) => a.pid - b.pid,
  )
}
