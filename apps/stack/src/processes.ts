import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/** Whether a process is running. A zombie (exited, but not yet reaped by its parent) is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    // The state follows the name, which is in brackets and may itself contain brackets.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] !== 'Z'
  } catch {
    return true // no /proc on this system
  }
}

const LISTEN = '0A'

/**
 * All listening TCP sockets of this machine, with the address in the format of /proc/net/tcp (`0100007F:0BB8`) and
 * the processes that have the socket open. Without privileges, finds only processes of this user. Empty without
 * /proc (not Linux).
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

/** The processes that this user may inspect, with program and open files. */
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
        return [] // exited, or not accessible for this user
      }
    }),
  )
  return found.flat()
}

/**
 * The processes of this user that listen on a TCP port of this machine, lowest id first. Empty on systems other
 * than Linux.
 */
export async function listenersOn(port: number): Promise<{ pid: number; program: string }[]> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = (await listeningSockets()).filter(({ address }) => address.endsWith(ending))
  const found = sockets.flatMap(({ holders }) => holders)
  return [...new Set(found)].sort((a, b) => a.pid - b.pid)
}
