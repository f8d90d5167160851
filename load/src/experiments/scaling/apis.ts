import { apiSettings } from '@onetrip/stack/api.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { startStack } from '@onetrip/stack/stack.ts'
import { type LinkPlan, links, openLink } from '../../drivers/redis/links.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import type { Case } from '../../experiment/shape.ts'
import { type Variant, variantProgram } from '../../variants.ts'

export interface RunningApi {
  variant: Variant
  url: string
  /** Round trip time of a PING to its Redis. */
  pingMs: number
}

/** Cases with the same key share an API. */
export const apiKey = ({ variant, workers, link }: Case) => `${variant} ${workers} ${link}`

/** Parses the name of a link. */
export const linkOf = (name: Case[string] | undefined) => links(String(name))[0] as LinkPlan

/** The API's deadline for Redis. Over a distant link, a naive request takes seconds. */
const DEADLINE_MS = 60_000

/**
 * Starts the APIs of the cases, and their links to Redis. The APIs accept each other's tokens. They are stopped at the
 * end of the measurement; if one of them ends earlier, the measurement fails.
 *
 * @returns the APIs by `apiKey`.
 * @throws ProgramError when one does not start; the reason of `context.signal`.
 */
export async function startApis(
  context: Context,
  redis: RedisServer,
  cases: readonly Case[],
): Promise<Map<string, RunningApi>> {
  const apis = new Map<string, RunningApi>()
  const sessionSecret = newSecret()
  const wanted = new Map(cases.map((one) => [apiKey(one), one])).values()
  const stacks = Map.groupBy(wanted, ({ link, workers }) => JSON.stringify({ link, workers }))
  for (const [key, own] of stacks) {
    const { link, workers }: Case = JSON.parse(key)
    const { url, pingMs } = await openLink(linkOf(link), redis, context)
    const ports = await freePorts(own.length)
    const text = `Starting ${counted(own.length, 'API')} over ${link}, workers: ${workers}`
    const stack = await context.step(text, () =>
      startStack({
        host: '127.0.0.1',
        sessionSecret,
        signal: context.signal,
        redis: { kind: 'foreign', url },
        apis: own.map(({ variant }, index) => ({
          ...variantProgram(variant as Variant),
          port: ports[index] ?? 0,
        })),
        env: {
          WORKERS: String(workers),
          REDIS_POOL_SIZE: String(apiSettings().poolSize),
          REDIS_DEADLINE_MS: String(DEADLINE_MS),
          JANITOR_INTERVAL_SECONDS: '0',
        },
      }),
    )
    context.defer(() => stack.stop())
    void stack.lost.then(async (program) => context.fail(await endOf(program)))
    for (const [index, one] of own.entries()) {
      const api = stack.apis[index]
      if (api) apis.set(apiKey(one), { variant: one.variant as Variant, url: api.url, pingMs })
    }
  }
  return apis
}
