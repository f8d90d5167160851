import { fileURLToPath } from 'node:url'
import { packageVersion } from '../measure/package-version.ts'

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

export const isContender = (name: string): name is ContenderName => name in clients

/** Path of the program that serves the API through it. */
export const contenderProgram = (name: ContenderName): string =>
  fileURLToPath(new URL(`../../contenders/${name}.ts`, import.meta.url))

/** Name and installed version of what a variant talks to Redis with; null for the one without. */
export async function clientOf(variant: string): Promise<string | null> {
  const name = isContender(variant) ? clients[variant] : 'ioredis'
  return name === null ? null : await packageVersion(name)
}
