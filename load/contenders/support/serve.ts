import {
  createSessionStore,
  documentKeys,
  type SessionStore,
  StoreError,
} from '@onetrip/session-store'
// The only place in load/ that imports an application. A comparison of clients is honest only if all
// of them stand behind the same route (schemas, token check, answers), and the route is apps/api's.
import { buildApp } from '../../../apps/api/src/app.ts'
import { trustingAuthenticator } from '../../../apps/api/src/authenticator.ts'
import { type Config, loadConfig } from '../../../apps/api/src/config.ts'
import { checkName } from '../../../packages/session-store/src/input.ts'
import { readOutcomes } from '../../../packages/session-store/src/outcomes.ts'
import { createTokens } from '../../../packages/session-store/src/tokens.ts'
import { recordView, type Update, undoView } from '../../../packages/session-store/src/updates.ts'
import { redisAddress } from '../../src/stack/address.ts'
import type { Contender, ContenderOptions } from './contender.ts'

/**
 * Serves the API of apps/api with `POST /views` through another client, until SIGTERM or SIGINT. The
 * settings are those of apps/api; as there, `REDIS_POOL_SIZE` connections take turns. All other
 * routes go through our own store.
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
  const own = createSessionStore({
    url: redisUrl,
    strategy: 'pipeline',
    deadlineMs,
    tokens: tokensOptions(config),
  })
  const app = await buildApp({
    store: {
      ...own,
      get pool() {
        return own.pool
      },
      strategy: name as SessionStore['strategy'],
      recordView: recordViewThrough(contenders, config),
    },
    authenticator: trustingAuthenticator(config.NODE_ENV),
    transport: redisAddress(redisUrl).transport,
    secureCookie: false,
    logger: { level: config.LOG_LEVEL },
  })
  const stop = async () => {
    await app.close()
    await Promise.all([own.close(), ...contenders.map((contender) => contender.close())])
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop())
  await own.ready(config.STARTUP_DEADLINE_MS)
  await app.listen({ host: config.HOST, port: config.PORT })
}

const tokensOptions = (config: Config) => ({
  secrets: config.SESSION_SECRETS.split(','),
  lifetimeSeconds: config.SESSION_LIFETIME_SECONDS,
})

/** The store's `recordView`, the same but for the client. */
function recordViewThrough(
  contenders: readonly Contender[],
  config: Config,
): SessionStore['recordView'] {
  const tokens = createTokens(tokensOptions(config))
  let turn = 0
  const run = async <Result>(update: Update<Result>): Promise<Result> => {
    const contender = contenders[turn++ % contenders.length]
    if (!contender) throw new Error('there is no connection')
    return readOutcomes(update, await contender.send(update))
  }
  return async (token, item) => {
    const id = tokens.verify(token)
    checkName('item', item)
    const view = await run(recordView(documentKeys, { id, item }, Date.now() / 1000))
    if (view) return view
    await run(undoView(documentKeys, { id, item }))
    throw new StoreError('ONETRIP_UNKNOWN_SESSION', 'there is no such session (any more)')
  }
}
