import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'

// What is set here belongs to the network namespace of this process; see `isolateProcess`.

/** An address that the kernel does not take for loopback although it never leaves the namespace. */
export const OTHER_ADDRESS = '10.211.55.1'

export const HOW_TO_RUN =
  'Run it as root, or as "unshare -r npm run load -- ports", and outside of a container.'

/**
 * Changes settings below `net.ipv4`.
 *
 * @throws Problem where the settings of a namespace cannot be changed.
 */
export async function setNetwork(settings: Record<string, string | number>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    await writeFile(`/proc/sys/net/ipv4/${name}`, String(value)).catch((cause) => {
      throw new Problem(
        `The setting net.ipv4.${name} cannot be changed here (${cause.code}), not even in a network namespace of its own. ${HOW_TO_RUN}`,
        { cause },
      )
    })
  }
}

/**
 * Gives the namespace its other address.
 *
 * @throws Problem where the program `ip` (iproute2) is missing.
 */
export async function addOtherAddress(): Promise<void> {
  const args = ['address', 'add', `${OTHER_ADDRESS}/32`, 'dev', 'lo']
  await promisify(execFile)('ip', args).catch((cause) => {
    throw new Problem(
      `--cases: those at another address need the program ip (iproute2): ${messageOf(cause)}`,
      { cause },
    )
  })
}

/** Connections in TIME_WAIT, where the side that closed first holds a port. */
export const timeWaitOf = async (serverPort: number) =>
  timeWaitIn(await readFile('/proc/self/net/tcp', 'utf8'), serverPort)

/**
 * Of all servers and clients of the namespace, and of one server's clients and on that server's side.
 *
 * @param table as `/proc/net/tcp` (proc_net_tcp(5)) shows it.
 */
export function timeWaitIn(table: string, serverPort: number) {
  const port = `:${serverPort.toString(16).toUpperCase().padStart(4, '0')}`
  const waiting = table.split('\n').flatMap((line) => {
    const [, local, remote, state] = line.trim().split(/\s+/)
    return state === '06' ? [`${local} ${remote}`] : []
  })
  // A line may come twice in a table that changes while it is read.
  const all = [...new Set(waiting)]
  return {
    all: all.length,
    clients: all.filter((ends) => ends.endsWith(port)).length,
    server: all.filter((ends) => ends.includes(`${port} `)).length,
  }
}
