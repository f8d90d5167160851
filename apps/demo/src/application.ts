import {
  type Application,
  loadConfig,
  type RedisLocation,
  redisLocation,
  topologyOf,
} from '@onetrip/api'
import { noRace, raceRunning, serviceFailed, soldOut } from './errors.ts'
import { demoRoutes } from './routes/demo.ts'
import { pageRoutes } from './routes/page.ts'
import { reportRoutes } from './routes/report.ts'
import { type RiskOptions, riskPlugin } from './shop/risk.ts'
import { shopRoutes } from './shop/shop.ts'

export interface DemoOptions extends Pick<RiskOptions, 'cacheEntries' | 'writeEveryMs'> {
  /** Address of Redis, for the connection of the risk cache. */
  redis: RedisLocation
  deadlineMs: number
  /** Unix socket of the demo service; empty: no race. */
  demoSocket: string
  /** HTML file that `/report` serves; empty: none. */
  reportFile: string
}

/** The demo page, its routes and the shop, as an application for `serve()`. */
export function demoApplication(options: DemoOptions): Omit<Application, 'authenticator'> {
  const { redis, demoSocket, reportFile } = options
  const topology = topologyOf(redis)
  return {
    errors: [noRace, raceRunning, serviceFailed, soldOut],
    onLogin: (request, user) => request.server.risk.loggedIn(request, user),
    async plugins(app) {
      await app.register(riskPlugin, { ...redis, ...options })
    },
    async publicRoutes(app) {
      await app.register(demoRoutes, { socket: demoSocket, topology })
      await app.register(reportRoutes, { file: reportFile })
      await app.register(pageRoutes)
    },
    routes: shopRoutes,
  }
}

/** Maximum users in the risk cache of a process. */
const CACHE_ENTRIES = 10_000

/**
 * Reads the options from the settings of the API, and from `DEMO_SOCKET` and `REPORT_FILE`.
 *
 * @throws Error that names the invalid setting.
 */
export function demoOptions(environment: NodeJS.ProcessEnv = process.env): DemoOptions {
  const config = loadConfig(environment)
  const { DEMO_SOCKET = '', REPORT_FILE = '' } = environment
  const redis = redisLocation(config)
  // `naive` keeps no connection open. On a cluster each primary reports changes of its own keys only.
  const hasCache = !config.STRATEGY.startsWith('naive') && !redis.cluster
  return {
    redis,
    deadlineMs: config.REDIS_DEADLINE_MS,
    cacheEntries: hasCache ? CACHE_ENTRIES : 0,
    demoSocket: DEMO_SOCKET,
    reportFile: REPORT_FILE,
  }
}
