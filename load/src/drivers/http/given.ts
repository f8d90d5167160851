import { redisAddress, redisOfEnvironment, requireOwnHost } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { redisFacts } from '@onetrip/stack/redis-info.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { type Variant, variants } from '../../contenders.ts'
import { apiFacts } from '../../measure/api-metrics.ts'
import type { Target } from './target.ts'

/**
 * The stack whose APIs the user names (`--url`): in containers, on another machine. What they are,
 * they say themselves. Its Redis is `REDIS_URL`.
 *
 * @param owned whether the user says that these hosts are theirs, if they are not this machine.
 * @throws Problem when an address is not to be used, does not answer, or is none of ours.
 */
export async function givenTarget(urls: readonly string[], owned: boolean): Promise<Target> {
  const redisUrl = await redisOfEnvironment()
  if (redisUrl === undefined) {
    throw new Problem(
      '--url needs REDIS_URL, the Redis of these APIs: what it does is measured, too.',
    )
  }
  const { transport } = redisAddress(redisUrl)
  for (const url of [redisUrl, ...urls]) requireOwnHost(url, owned)
  const apis = await Promise.all(urls.map(async (url) => ({ url, variant: await variantAt(url) })))
  const twin = apis.find(({ variant }, index) =>
    apis.slice(0, index).some((other) => other.variant === variant),
  )
  if (twin) throw new Problem(`--url names two APIs of the variant ${twin.variant}.`)
  const { build } = await redisFacts(redisUrl)
  print(`Measuring ${apis.map((api) => `${api.variant} at ${api.url}`).join(', ')}.`)
  return {
    kind: 'given',
    redis: { url: redisUrl, transport, build: build ?? 'foreign' },
    poolSize: null,
    workers: null,
    apis,
    lost: new Promise(() => {}),
    close: async () => {},
  }
}

async function variantAt(url: string): Promise<Variant> {
  const { strategy } = await apiFacts(url)
  const variant = variants.find((known) => known === strategy)
  if (variant) return variant
  throw new Problem(`The API at ${url} is ${strategy}, which is no variant that is known here.`)
}
