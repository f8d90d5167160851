import { readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/** Settings of the kernel that short connections depend on, in /proc/sys/net. */
const settings = {
  somaxconn: 'core/somaxconn',
  ports: 'ipv4/ip_local_port_range',
  reuseTimeWait: 'ipv4/tcp_tw_reuse',
  timeWaitBuckets: 'ipv4/tcp_max_tw_buckets',
  /** Null or 0 where connections are not tracked. */
  trackedConnections: 'netfilter/nf_conntrack_count',
} as const

/** Limits of the system; null for what it does not say. `descriptors` is that of a process. */
export type SystemLimits = Readonly<
  Record<keyof typeof settings | 'descriptors', number | string | null>
>

export async function systemLimits(): Promise<SystemLimits> {
  const entries = Object.entries(settings).map(async ([name, path]) => {
    const text = await readFile(`/proc/sys/net/${path}`, 'utf8').catch(() => null)
    return [name, text && (text.includes('\t') ? text.trim().replace('\t', '-') : Number(text))]
  })
  const all = Object.fromEntries(await Promise.all(entries))
  return { descriptors: await descriptorLimit(), ...all }
}

/** The hard limit, up to which a process may raise its own; null where it cannot be read. */
async function descriptorLimit(): Promise<number | null> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, hard] = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(limits) ?? []
  return hard === undefined ? null : Number(hard.replace('unlimited', 'Infinity'))
}

/** How many connections a Redis, or a client, can have at the same time here, with 100 descriptors to spare. */
export const mostConnections = async (): Promise<number> =>
  Math.max(0, ((await descriptorLimit()) ?? 1_024) - 100)

/** @throws Problem when a process cannot have as many connections at the same time. */
export async function requireConnections(count: number): Promise<void> {
  const most = await mostConnections()
  if (count <= most) return
  throw new Problem(
    `${count} connections at the same time need more descriptors than a process may have here (room for ${most}). Raise the limit (ulimit -Hn, as root, or LimitNOFILE), or ask for fewer.`,
  )
}
