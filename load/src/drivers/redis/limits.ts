import { readFile } from 'node:fs/promises'
import { Problem } from '@onetrip/stack/problem.ts'

/** What a process needs besides the sockets of the load. */
const SPARE_DESCRIPTORS = 100

/** Limits of the system that short connections run into; null where it does not tell. */
export interface SystemLimits {
  /** `ulimit -Hn`: how many descriptors a process may have. */
  descriptors: number | null
  /** `net.core.somaxconn` */
  somaxconn: number | null
  /** `net.ipv4.ip_local_port_range` */
  ports: string | null
  /** `net.ipv4.tcp_tw_reuse` */
  reuseTimeWait: number | null
  /** `net.ipv4.tcp_max_tw_buckets` */
  timeWaitBuckets: number | null
  /** `net.netfilter.nf_conntrack_count`: null or 0 where connections are not tracked. */
  trackedConnections: number | null
}

export async function systemLimits(): Promise<SystemLimits> {
  const text = async (path: string) => {
    const content = await readFile(`/proc/sys/net/${path}`, 'utf8').catch(() => null)
    return content?.trim().replaceAll(/\s+/g, '-') ?? null
  }
  const number = async (path: string) => {
    const content = await text(path)
    return content === null ? null : Number(content)
  }
  const [descriptors, somaxconn, ports, reuseTimeWait, timeWaitBuckets, trackedConnections] =
    await Promise.all([
      descriptorLimit(),
      number('core/somaxconn'),
      text('ipv4/ip_local_port_range'),
      number('ipv4/tcp_tw_reuse'),
      number('ipv4/tcp_max_tw_buckets'),
      number('netfilter/nf_conntrack_count'),
    ])
  return { descriptors, somaxconn, ports, reuseTimeWait, timeWaitBuckets, trackedConnections }
}

/** The hard limit, up to which a process may raise its own; null where it cannot be read. */
async function descriptorLimit(): Promise<number | null> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const hard = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(limits)?.[1]
  if (hard === undefined) return null
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard)
}

/** How many connections a Redis, or a client, can have at the same time here. */
export async function mostConnections(): Promise<number> {
  return Math.max(0, ((await descriptorLimit()) ?? 1_024) - SPARE_DESCRIPTORS)
}

/** @throws Problem when a process cannot have as many connections at the same time. */
export async function requireConnections(count: number): Promise<void> {
  const most = await mostConnections()
  if (count <= most) return
  throw new Problem(
    `${count} connections at the same time need more descriptors than a process may have here ` +
      `(room for ${most}). Raise the limit (ulimit -Hn, as root, or LimitNOFILE), or ask for fewer.`,
  )
}
