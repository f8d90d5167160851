import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'

// What is set here belongs to the network namespace of this process; see `isolateProcess`.

const TIME_WAIT = '06'

/** An address that the kernel does not take for loopback although it never leaves the namespace. */
export const OTHER_ADDRESS = '10.211.55.1'

export interface NetworkSettings {
  /** `net.ipv4.ip_local_port_range`, both included. */
  ports: { first: number; last: number }
  /** `net.ipv4.tcp_tw_reuse`: 0 never, 1 always, 2 on loopback (the kernel's default). */
  reuse: 0 | 1 | 2
  /** `net.ipv4.tcp_max_tw_buckets`: beyond it, a connection is forgotten at once. */
  maxTimeWait: number
}

/** @throws Problem where the settings of a namespace cannot be changed. */
export async function setNetwork({ ports, reuse, maxTimeWait }: NetworkSettings): Promise<void> {
  await set('ip_local_port_range', `${ports.first} ${ports.last}`)
  await set('tcp_tw_reuse', String(reuse))
  await set('tcp_max_tw_buckets', String(Math.round(maxTimeWait)))
}

async function set(name: string, value: string): Promise<void> {
  try {
    await writeFile(`/proc/sys/net/ipv4/${name}`, value)
  } catch (error) {
    throw new Problem(
      `The setting net.ipv4.${name} cannot be changed here (${(error as NodeJS.ErrnoException).code}), not even in a network namespace of its own. Run it as root, or as "unshare -r npm run load -- ports", and outside of a container.`,
      { cause: error },
    )
  }
}

/** How many connections are in TIME_WAIT, on whichever side. */
export async function allWaiting(): Promise<number> {
  const sockets = await readFile('/proc/self/net/sockstat', 'utf8')
  return Number(/^TCP:.* tw (\d+)/m.exec(sockets)?.[1] ?? 0)
}

/** Gives the namespace its other address. False where the program `ip` (iproute2) is missing. */
export async function addOtherAddress(): Promise<boolean> {
  try {
    await promisify(execFile)('ip', ['address', 'add', `${OTHER_ADDRESS}/32`, 'dev', 'lo'])
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Connections in TIME_WAIT between clients of this namespace and a server in it. */
export interface TimeWait {
  /** That hold a client's port: the client closed first. */
  clients: number
  /** On the server's side: it closed first. */
  server: number
}

export async function timeWaitOf(serverPort: number): Promise<TimeWait> {
  return timeWaitIn(await readFile('/proc/self/net/tcp', 'utf8'), serverPort)
}

/** @param table as `/proc/net/tcp` (proc_net_tcp(5)) shows it. */
export function timeWaitIn(table: string, serverPort: number): TimeWait {
  const end = `:${serverPort.toString(16).toUpperCase().padStart(4, '0')}`
  // A line may come twice in a table that changes while it is read.
  const [clients, server] = [new Set<string>(), new Set<string>()]
  for (const line of table.split('\n')) {
    const [, local = '', remote = '', state] = line.trim().split(/\s+/)
    if (state !== TIME_WAIT) continue
    if (remote.endsWith(end)) clients.add(local)
    else if (local.endsWith(end)) server.add(remote)
  }
  return { clients: clients.size, server: server.size }
}
