import { readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ApiOptions } from '@onetrip/stack/api.ts'
import { type StrategyName, strategyNames } from '../../apps/api/src/strategies/index.ts'
import { packageVersion } from './measure/machine.ts'

/** The programs in `load/contenders`, with the npm package of the client that each one uses. */
const clients = {
  bare: null,
  'node-redis': 'redis',
  glide: '@valkey/valkey-glide',
  autopipelining: 'ioredis',
  'connect-redis': 'connect-redis',
  'naive-lean': 'ioredis',
  'pipeline-framed': 'ioredis',
} as const

export type ContenderName = keyof typeof clients

export const contenders = Object.keys(clients) as ContenderName[]

/** The API with one of its strategies, or one of the contenders. */
export type Variant = StrategyName | ContenderName
export const variants: readonly Variant[] = [...strategyNames, ...contenders]

/** How a variant sends the commands of a request to Redis. */
export const descriptions: Readonly<Record<Variant, string>> = {
  naive: 'a new connection per request with ioredis’s defaults, one command after another, quit()',
  'naive-lean': 'like naive, but the client sends no commands of its own when it connects',
  sequential: 'a long-lived connection, one command after another',
  pipeline: 'a long-lived connection, one ioredis pipeline per request (as in Redis in Action)',
  'pipeline-framed':
    'a long-lived connection, one pipeline per request, encoded by the store as one string',
  batch: 'a long-lived connection, one pipeline for up to 64 concurrent requests',
  bare: 'no Redis: an upper bound, a Fastify route with the same schemas and constant answers',
  'node-redis': 'node-redis: a pipeline per request, as in its documentation',
  glide: 'valkey-glide: a pipeline per request, as in its documentation',
  autopipelining: 'ioredis with its own batching (enableAutoPipelining)',
  'connect-redis': 'another application with the same routes: @fastify/session with connect-redis',
}

const isContender = (name: string): name is ContenderName => name in clients

/** The options of `startApi` for a variant. */
export function variantProgram(
  variant: Variant,
): Pick<ApiOptions, 'variant' | 'program' | 'afterExit'> {
  if (!isContender(variant)) return { variant }
  const program = fileURLToPath(new URL(`../contenders/${variant}.ts`, import.meta.url))
  return { variant, program, ...(variant === 'glide' && { afterExit: removeGlideSockets }) }
}

/** Name and installed version of a variant's Redis client; null for the limits. */
export function clientOf(variant: string): string | null {
  const name = isContender(variant) ? clients[variant] : 'ioredis'
  return name && packageVersion(name)
}

/** `ioredis 6.0.0 (naive, batch); redis 6.3.1 (node-redis)`; null if no variant has a client. */
export function clientsOf(names: readonly Variant[]): string | null {
  const users = Map.groupBy(names, clientOf)
  users.delete(null)
  return [...users].map(([client, of]) => `${client} (${of.join(', ')})`).join('; ') || null
}

/**
 * Removes the sockets of a process that has ended. valkey-glide 2.5.2 creates a Unix socket for its native part in
 * /tmp, ignores TMPDIR, and never removes the socket.
 */
export function removeGlideSockets(pid: number): void {
  for (const name of readdirSync('/tmp')) {
    if (name.startsWith(`glide-socket-${pid}-`)) rmSync(`/tmp/${name}`, { force: true })
  }
}
