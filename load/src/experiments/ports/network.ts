import { readFile, writeFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'
import { HOW_TO_RUN } from '../../drivers/redis/generator/peer-network.ts'

// All settings are those of the network namespace of this process, see `isolateProcess`.

/** An address within the namespace that the kernel does not treat as loopback. */
export const OTHER_ADDRESS = '10.211.55.1'

/**
 * Changes settings of `net.ipv4`.
 *
 * @throws Problem when this process lacks the permission.
 */
export async function setNetwork(settings: Record<string, string | number>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    await writeFile(`/proc/sys/net/ipv4/${name}`, String(value)).catch((cause) => {
      throw new Problem(
        `The setting net.ipv4.${name} of the network namespace cannot be changed (${cause.code}). ${HOW_TO_RUN}`,
        { cause },
      )
    })
  }
}

/** Counts connections in TIME_WAIT, see `timeWaitIn`. */
export const timeWaitOf = async (serverPort: number) =>
  timeWaitIn(await readFile('/proc/self/net/tcp', 'utf8'), serverPort)

/**
 * Counts connections in TIME_WAIT. The side that closes first keeps its port in this state.
 *
 * @param table in the format of `/proc/net/tcp` (proc_net_tcp(5)).
 * @returns the connections of all servers of the namespace; those on the side of this server's clients; those on the
 *   side of this server.
 */
export function timeWaitIn(table: string, serverPort: number) {
  const port = `:${serverPort.toString(16).toUpperCase().padStart(4, '0')}`
  const waiting = table.split('\n').flatMap((line) => {
    const [, local, remote, state] = line.trim().split(/\s+/)
    return state === '06' ? [`${local} ${remote}`] : []
  })
  // A table that changes while it is read may have a line twice.
  const all = [...new Set(waiting)]
  return {
    all: all.length,
    clients: all.filter((ends) => ends.endsWith(port)).length,
    server: all.filter((ends) => ends.includes(`${port} `)).length,
  }
}
