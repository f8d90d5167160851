import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientNetwork, type RedisLocation } from '@onetrip/api'
import type { Command, Operation, Reply } from '@onetrip/session-store'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Counter, Gauge } from 'prom-client'
import { clientCache } from './client-cache.ts'
import { RISK_KEYS, shopKeys } from './keys.ts'
import { type RiskReason, UserRisk } from './schemas.ts'
import { writeBehind } from './write-behind.ts'

// Risk features of a user, from earlier logins. Read through a local cache, written with write-behind.

/** Data about a user's logins. */
interface Features {
  logins: number
  /** Milliseconds since 1970; null: no login yet. */
  lastLoginAt: number | null
  /** Hash of the network of the last login; null: no login yet. */
  network: string | null
  /** Why the last login was unusual. */
  reasons: RiskReason[]
}

/** Logins of one user that are not written yet. */
interface Logins {
  count: number
  lastAt: number
  network: string
  /** Reasons of the last login. */
  reasons: RiskReason[]
}

/** Expiry of the features after the last login: 90 days. */
const FEATURES_SECONDS = 7_776_000

const LONG_ABSENCE_MS = 30 * 24 * 3600 * 1000

/** Reads the features of a user. Keys: risk. */
function readFeatures(key: string): Operation<Features> {
  return {
    commands: [['HGETALL', key]],
    readOnly: true,
    read([reply]) {
      const flat = reply as readonly Reply[]
      const fields = new Map(
        Array.from({ length: flat.length / 2 }, (_, index) => [
          flat[2 * index],
          flat[2 * index + 1],
        ]),
      )
      const text = (name: string) => (fields.has(name) ? String(fields.get(name)) : null)
      const lastLoginAt = text('lastLoginAt')
      return {
        logins: Number(text('logins')),
        lastLoginAt: lastLoginAt === null ? null : Number(lastLoginAt),
        network: text('network'),
        reasons: JSON.parse(text('reasons') ?? '[]'),
      }
    },
  }
}

/** Adds logins to the features of several users. Keys: risk of each user, in different slots of a cluster. */
function addLogins(changes: ReadonlyMap<string, Logins>): Operation<void> {
  return {
    commands: [...changes].flatMap(([key, { count, lastAt, network, reasons }]): Command[] => [
      ['HINCRBY', key, 'logins', count],
      ['HSET', key, 'lastLoginAt', lastAt, 'network', network, 'reasons', JSON.stringify(reasons)],
      ['EXPIRE', key, FEATURES_SECONDS],
    ]),
    readOnly: false,
    read: () => undefined,
  }
}

/** Why a login is unusual compared with earlier ones; empty if it is not. */
function loginReasons(
  { logins, lastLoginAt, network }: Omit<Features, 'reasons'>,
  login: { network: string; now: number },
): RiskReason[] {
  if (logins === 0) return ['first login']
  return [
    ...(network === login.network ? [] : (['new network'] as const)),
    ...(login.now - Number(lastLoginAt) > LONG_ABSENCE_MS ? (['long absence'] as const) : []),
  ]
}

/** Reasons of the last login, plus `new network` if the request comes from another network than the login. */
function requestReasons({ logins, network, reasons }: Features, own: string): RiskReason[] {
  if (logins === 0) return ['first login']
  return network === own ? reasons : [...new Set([...reasons, 'new network' as const])]
}

/**
 * Hash of user and network: Redis stores no addresses, and two users in one network have different hashes.
 */
const networkOf = (request: FastifyRequest, user: string): string =>
  createHash('sha256')
    .update(JSON.stringify([user, clientNetwork(request)]))
    .digest('base64url')
    .slice(0, 22)

/** Includes the address of Redis for the connection that receives invalidations. */
export interface RiskOptions extends RedisLocation {
  /** Maximum users in the cache of this process; 0: no cache and no connection. */
  cacheEntries: number
  /** Timeout of replies on that connection, in milliseconds. */
  deadlineMs: number
  /** Interval of writes: logins wait this long to be written together, in milliseconds. Default 100. */
  writeEveryMs?: number
}

interface Risk {
  features(user: string): Promise<Features>
  /** Assesses and records a login in the background: does not delay the login and never throws. */
  loggedIn(request: FastifyRequest, user: string): void
}

declare module 'fastify' {
  interface FastifyInstance {
    risk: Risk
  }
}

/** Interval of checks of the connection that receives invalidations. */
const CHECK_EVERY_MS = 1_000

/** Maximum users with logins waiting to be written: about 200 bytes each. */
const MAX_PENDING = 10_000

export const riskPlugin = fp<RiskOptions>(
  async (app, options) => {
    const { url, tls, sentinel, cacheEntries, deadlineMs, writeEveryMs = 100 } = options
    const { store } = app
    let rejected = false
    const metrics = riskMetrics(app, () => cache.entries)
    const cache = clientCache<Features>({
      url,
      tls,
      sentinel,
      deadlineMs,
      prefix: RISK_KEYS,
      checkEveryMs: CHECK_EVERY_MS,
      maxEntries: cacheEntries,
      read: (key) => store.run(readFeatures(key)),
      onRead: metrics.read,
      onRejected(err) {
        if (!rejected) app.log.warn({ err }, 'Redis rejected CLIENT TRACKING; risk cache is off')
        rejected = true
      },
    })
    const writes = writeBehind<Logins>({
      store,
      operation: addLogins,
      intervalMs: writeEveryMs,
      maxPending: MAX_PENDING,
      merge: (older, newer) => ({ ...newer, count: older.count + newer.count }),
      onResult: metrics.written,
    })
    const features = (user: string) => cache.get(shopKeys.risk(user))
    const assessing = new Set<Promise<void>>()

    async function assess(user: string, network: string, now: number): Promise<void> {
      let reasons: RiskReason[]
      try {
        reasons = loginReasons(await features(user), { network, now })
        metrics.login(reasons.length > 0 ? 'high' : 'low')
      } catch {
        reasons = ['not assessed']
        metrics.login('unknown') // the store reports the error
      }
      writes.add(shopKeys.risk(user), { count: 1, lastAt: now, network, reasons })
    }

    app.decorate('risk', {
      features,
      loggedIn(request: FastifyRequest, user: string) {
        const assessed = assess(user, networkOf(request, user), Date.now())
        assessing.add(assessed)
        void assessed.finally(() => assessing.delete(assessed))
      },
    })
    // In preClose too: the application may close the store before onClose.
    app.addHook('preClose', async () => {
      await Promise.all(assessing)
      await writes.flush()
    })
    app.addHook('onClose', async () => {
      await Promise.all(assessing)
      await writes.close()
      cache.close()
    })
  },
  { name: 'risk', dependencies: ['metrics', '@onetrip/session-store'] },
)

function riskMetrics(app: FastifyInstance, entries: () => number) {
  const registers = [app.metrics]
  const counter = (name: string, help: string, label: string, values: readonly string[]) => {
    const counter = new Counter({ name, help, labelNames: [label], registers })
    for (const value of values) counter.inc({ [label]: value }, 0)
    return (value: string, by = 1) => counter.inc({ [label]: value }, by)
  }
  new Gauge({
    name: 'onetrip_risk_cache_entries',
    help: 'Users whose risk features are in the local cache',
    registers,
    collect() {
      this.set(entries())
    },
  })
  return {
    read: counter(
      'onetrip_risk_reads_total',
      'Reads of risk features by result: hit, miss, or bypass (no cache, or it may be stale)',
      'result',
      ['hit', 'miss', 'bypass'],
    ),
    written: counter(
      'onetrip_risk_writes_total',
      'Users whose logins were to be recorded, by result: written or dropped',
      'result',
      ['written', 'dropped'],
    ),
    login: counter(
      'onetrip_risk_logins_total',
      'Logins by risk: low, high or unknown (Redis did not answer)',
      'risk',
      ['low', 'high', 'unknown'],
    ),
  }
}

export const riskRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { risk } = app
  app.get(
    '/me/risk',
    {
      schema: {
        operationId: 'getRisk',
        summary: 'Assess the risk of this request from the last login and its network',
        description:
          'Reasons: why the last login was unusual, and `new network` if this request comes from another network than that login. A login is recorded after about 0.1 s. Other processes usually see it at once, and by default at most 3 s later.',
        tags: ['shop'],
        response: { 200: UserRisk },
      },
    },
    async (request) => {
      const { user } = request
      const features = await risk.features(user)
      const { logins, lastLoginAt } = features
      return { logins, lastLoginAt, reasons: requestReasons(features, networkOf(request, user)) }
    },
  )
}
