import { apiSettings, apiUrl, startApi } from '@onetrip/stack/api.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { endOf, type Program } from '@onetrip/stack/program.ts'
import { type LinkPlan, links, openLink } from '../../drivers/redis/links.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import { counted } from '../../experiment/figures.ts'
import type { Case } from '../../experiment/shape.ts'
import { type Variant, variantProgram } from '../../variants.ts'

export interface RunningApi {
  variant: Variant
  url: string
  /** Round trip of a PING to its Redis. */
  pingMs: number
}

/** Cases with the same key are of the same API. */
export const apiKey = ({ variant, workers, link }: Case) => `${variant} ${workers} ${link}`

/** A link by its name, which says what it is. */
export const linkOf = (name: Case[string] | undefined) => links(String(name))[0] as LinkPlan

/** The longest that the API waits for Redis: over a distant link, a naive request takes seconds. */
const DEADLINE_MS = 60_000

/**
 * Starts the APIs of the cases, and the links between them and Redis. They accept each other's tokens. At
 * the end they are stopped; the measurement ends when one of them does.
 *
 * @returns the APIs by `apiKey`.
 * @throws ProgramError when one does not start; the reason of `context.signal`.
 */
export async function startApis(
  context: Context,
  redis: RedisServer,
  cases: readonly Case[],
): Promise<Map<string, RunningApi>> {
  const { signal } = context
  const apis = new Map<string, RunningApi>()
  let isStopping = false
  const common = {
    ...{ host: '127.0.0.1', sessionSecret: newSecret(), poolSize: apiSettings().poolSize },
    ...{ deadlineMs: DEADLINE_MS, janitor: false, signal },
  }
  const wanted = new Map(cases.map((one) => [apiKey(one), one]))
  for (const [name, own] of Map.groupBy(wanted.values(), ({ link }) => String(link))) {
    const { url: redisUrl, pingMs } = await openLink(linkOf(name), redis, context)
    const ports = await freePorts(own.length)
    const programs: Program[] = []
    context.defer(() => {
      isStopping = true
      return Promise.all(programs.map((program) => program.stop()))
    })
    const start = async (one: Case, port: number) => {
      const variant = one.variant as Variant
      const workers = Number(one.workers)
      const program = await startApi({
        ...{ ...common, ...variantProgram(variant), port, workers, redisUrl },
      })
      programs.push(program)
      void program.exited.then(async () => {
        if (!isStopping) context.fail(await endOf(program))
      })
      apis.set(apiKey(one), { variant, url: apiUrl(common.host, port), pingMs })
    }
    // All have to have started or failed before any is stopped.
    const started = await context.step(`Starting ${counted(own.length, 'API')} over ${name}`, () =>
      Promise.allSettled(own.map((one, index) => start(one, ports[index] ?? 0))),
    )
    for (const result of started) if (result.status === 'rejected') throw result.reason
  }
  return apis
}
