import { readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/**
 * How many connections a Redis, or a client, can have at the same time here, with 100 descriptors to spare:
 * by the hard limit, up to which a process may raise its own.
 */
export async function mostConnections(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, hard = '1024'] = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(limits) ?? []
  return Math.max(0, Number(hard.replace('unlimited', 'Infinity')) - 100)
}

/** @throws Problem when a process cannot have as many connections at the same time. */
export async function requireConnections(count: number): Promise<void> {
  const most = await mostConnections()
  if (count <= most) return
  throw new Problem(
    `${count} connections at the same time need more descriptors than a process may have here (room for ${most}). Raise the limit (ulimit -Hn, as root, or LimitNOFILE), or ask for fewer.`,
  )
}
