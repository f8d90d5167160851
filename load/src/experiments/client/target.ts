import { setTimeout as delay } from 'node:timers/promises'
import { hideCredentials, redisAddress, requireOwnHost } from '@onetrip/stack/address.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import { callers } from './callers.ts'

/** The address of a server; written to a file or printed, it has no password in it. */
export class Address {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  get url(): string {
    return this.#url
  }

  toJSON(): string {
    return hideCredentials(this.#url)
  }
}

/** The server that is measured: one of this experiment's own, or the user's. */
export interface Target {
  url: string
  /** What to call it. */
  name: string
  /** Most calls of one run, and most connections that one run opens. */
  maxCalls: number
  maxConnections: number
  /** Null when it is the user's, whose counters count other clients, too. */
  server: RedisServer | null
}

/** Ours: a connection keeps its port for a minute after it was closed, and there are 28,000 ports. */
const OWN = { maxCalls: 1_000_000, maxConnections: 300 }

/** The user's, which has other work to do. */
const GENTLE = { maxCalls: 1_000, maxConnections: 200 }

/**
 * @param address of the user's server; without one, a server of this experiment's own is started.
 * @throws Problem when the address is malformed, has a password that everybody sees, leads to another
 *   machine which the user has not claimed as theirs (`owned`), or to a server that does not answer.
 */
export async function findTarget(
  context: Context,
  address: Address | undefined,
  owned: boolean,
): Promise<Target> {
  if (address === undefined) {
    const server = await context.startRedis({ build: 'patched' })
    const url = `redis://127.0.0.1:${server.port}`
    return { url, name: 'a Redis of its own', ...OWN, server }
  }
  const { url } = address
  const { options } = redisAddress(url)
  if (options.password && url !== process.env.REDIS_URL) {
    throw new Problem(
      'A password on the command line is visible to everybody who lists processes. Give the address as REDIS_URL in the environment, instead of --url.',
    )
  }
  requireOwnHost(url, owned)
  const name = hideCredentials(url)
  try {
    const caller = await callers.raw(url)
    await caller.call().finally(caller.close)
  } catch (cause) {
    throw new Problem(`The Redis at ${name} cannot be used: ${messageOf(cause)}`, { cause })
  }
  return { url, name, ...GENTLE, server: null }
}

/** What other clients do on a server while nothing of ours runs. Null when this user may not call INFO. */
export async function watchOthers(url: string, seconds: number, signal: AbortSignal) {
  const monitor = await RedisMonitor.connect(url).catch(() => null)
  if (!monitor) return null
  try {
    const before = await monitor.read()
    await delay(seconds * 1_000, undefined, { signal })
    const after = await monitor.read()
    const commands = after.commands - before.commands
    return { seconds, commands, connections: after.connections - before.connections }
  } finally {
    monitor.close()
  }
}
