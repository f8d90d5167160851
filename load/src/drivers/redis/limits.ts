import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'
import { isIsolated } from './generator/program.ts'

/**
 * The largest number of concurrent connections of a process on this machine: the hard limit of descriptors (a process
 * may raise its soft limit to it), less 100 for other files.
 */
export function maxConnections(): number {
  const limits = process.platform === 'linux' ? readFileSync('/proc/self/limits', 'utf8') : ''
  const [, hard = '1024'] = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(limits) ?? []
  return Math.max(0, Number(hard.replace('unlimited', 'Infinity')) - 100)
}

/** @throws Problem when a process cannot have this number of concurrent connections. */
export async function requireConnections(count: number): Promise<void> {
  const most = maxConnections()
  if (count <= most) return
  throw new Problem(
    `${count} concurrent connections need more descriptors than a process may have here (at most ${most} connections). Raise the limit (ulimit -Hn, as root, or LimitNOFILE), or use fewer connections.`,
  )
}

/**
 * Removes two limits of the kernel that would hide those of Redis: clients on one address, such as redis-benchmark,
 * leave its ports in TIME_WAIT; connections that are opened at once overflow the backlog.
 *
 * @returns whether the limits were removed. Outside of its own network namespace, this process changes nothing.
 */
export async function removeNetworkLimits(clients: number): Promise<boolean> {
  if (!isIsolated()) return false
  const settings = {
    'ipv4/tcp_max_tw_buckets': 0,
    'ipv4/tcp_max_syn_backlog': clients,
    'core/somaxconn': clients,
  }
  const writes = Object.entries(settings).map(([name, value]) =>
    writeFile(`/proc/sys/net/${name}`, String(value)),
  )
  return (await Promise.allSettled(writes)).every(({ status }) => status === 'fulfilled')
}
