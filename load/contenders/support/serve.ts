import { parseRedisUrl, type Sender, SessionStore } from '@onetrip/session-store'
// Imports apps/api, because a fair comparison of clients needs the same routes (schemas, token check, answers) for all
// of them.
import { buildApp } from '../../../apps/api/src/app.ts'
import { trustingAuthenticator } from '../../../apps/api/src/authenticator.ts'
import { loadConfig } from '../../../apps/api/src/read-settings.ts'
import { comparedStrategies } from '../../src/compared-strategies.ts'
import type { Contender, ContenderOptions } from './contender.ts'

/**
 * Runs the API of apps/api with another client, until SIGTERM or SIGINT. The settings are those of apps/api;
 * `REDIS_POOL_SIZE` connections are used in turn.
 */
export async function serve(
  name: string,
  connect: (options: ContenderOptions) => Promise<Contender>,
): Promise<void> {
  const config = loadConfig()
  const { REDIS_URL: redisUrl, REDIS_DEADLINE_MS: deadlineMs } = config
  const contenders = await Promise.all(
    Array.from({ length: config.REDIS_POOL_SIZE }, () => connect({ redisUrl, deadlineMs })),
  )
  const store = new SessionStore({
    sender: inTurn(name, contenders),
    deadlineMs,
    idleSeconds: config.SESSION_IDLE_SECONDS,
    janitor: 'elsewhere', // its commands would be measured, too
    tokens: {
      secrets: config.SESSION_SECRETS.split(','),
      lifetimeSeconds: config.SESSION_LIFETIME_SECONDS,
    },
  })
  const app = await buildApp({
    store,
    authenticator: trustingAuthenticator(config.NODE_ENV),
    transport: parseRedisUrl(redisUrl).transport,
    secureCookie: false,
    logger: { level: config.LOG_LEVEL },
  })
  closeOnSignal(app, () => store.close())
  await store.ready()
  await app.listen({ host: config.HOST, port: config.PORT })
}

/** Runs the API with a way of sending that exists only for comparison. */
export const serveStrategy = (name: string): Promise<void> =>
  serve(name, async ({ redisUrl: redis, deadlineMs }) => {
    const sender = comparedStrategies[name]?.({ redis, deadlineMs, poolSize: 1 })
    if (!sender) throw new Error(`there is no strategy ${name}`)
    return sender
  })

/** Closes an application on SIGTERM or SIGINT, then calls `andThen`. */
export function closeOnSignal(
  app: { close(): Promise<unknown> },
  andThen: () => Promise<unknown>,
): void {
  const stop = async () => {
    await app.close()
    await andThen()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop())
}

function inTurn(name: string, contenders: readonly Contender[]): Sender {
  let turn = 0
  return {
    name,
    // Not async, because another promise per request would add to the cost of the client.
    send(operation) {
      const contender = contenders[turn++ % contenders.length]
      if (!contender) throw new Error('the pool has no connection')
      return contender.send(operation)
    },
    close: async () => void (await Promise.all(contenders.map((contender) => contender.close()))),
  }
}
