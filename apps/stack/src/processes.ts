import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/** Whether a process runs. A zombie, which has ended and waits for its parent to notice, does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    // The state follows the name, which is in brackets and may contain some itself.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] !== 'Z'
  } catch {
    return true // there is no /proc here
  }
}

const LISTEN = '0A'

/**
 * All TCP sockets that listen on this machine, with the address as /proc/net/tcp writes it
 * (`0100007F:0BB8`) and the processes that have it open. Without privileges, only processes of this
 * user are found. Empty where there is no /proc (not Linux).
 */
export async function listeningSockets() {
  const all = await processes()
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  return tables
    .flatMap((table) => table.split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTEN)
    .map((fields) => ({
      address: fields[1] ?? '',
      holders: all.filter(({ files }) => files.has(`socket:[${fields[9]}]`)),
    }))
}

/** The processes that this user may look at, with the program and the open files of each. */
async function processes() {
  const names = await readdir('/proc').catch(() => [])
  const pids = names.map(Number).filter(Number.isInteger)
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        const program = basename(await readlink(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '')
        const descriptors = await readdir(`/proc/${pid}/fd`)
        const links = descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))
        return [{ pid, program, files: new Set(await Promise.all(links)) }]
      } catch {
        return [] // it has ended, or this user may not look at it
      }
    }),
  )
  return found.flat()
}

/**
 * The processes that listen on a TCP port of this machine, the lowest id first. None on other systems
 * than Linux, and none of other users.
 */
export async function listenersOn(port: number): Promise<{ pid: number; program: string }[]> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = (await listeningSockets()).filter(({ address }) => address.endsWith(ending))
  const found = sockets.flatMap(({ holders }) => holders)
  return [...new Set(found)].sort((a, b) => a.pid - b.pid)
}
