import { fileURLToPath } from 'node:url'
import { type StrategyName, strategyNames } from '@onetrip/session-store'
import type { ApiOptions } from '@onetrip/stack/api.ts'
import { removeGlideSockets } from './glide-sockets.ts'
import { packageVersion } from './measure/package-version.ts'

/** Each program in `load/contenders`, and the package of the client that it stands for. */
const clients = {
  noop: null,
  'node-redis': 'redis',
  'node-redis-batch': 'redis',
  glide: '@valkey/valkey-glide',
  autopipelining: 'ioredis',
  'connect-redis': 'connect-redis',
  express: 'connect-redis',
} as const

export type ContenderName = keyof typeof clients

/**
 * What our strategies are compared with: the same API through another client; and `connect-redis` and
 * `express`, applications of another kind that look the same from outside.
 */
export const contenders = Object.keys(clients) as ContenderName[]

/** The API with one of the store's strategies, or with what those are compared with. */
export type Variant = StrategyName | ContenderName
export const variants: readonly Variant[] = [...strategyNames, ...contenders]

export const isContender = (name: string): name is ContenderName => name in clients

/** What starts a variant of the API: see `startApi`. */
export function variantProgram(
  variant: Variant,
): Pick<ApiOptions, 'variant' | 'program' | 'afterExit'> {
  if (!isContender(variant)) return { variant }
  const program = fileURLToPath(new URL(`../contenders/${variant}.ts`, import.meta.url))
  return { variant, program, ...(variant === 'glide' && { afterExit: removeGlideSockets }) }
}

/** Name and installed version of what a variant talks to Redis with; null for the one without. */
export async function clientOf(variant: string): Promise<string | null> {
  const name = isContender(variant) ? clients[variant] : 'ioredis'
  return name === null ? null : await packageVersion(name)
}
