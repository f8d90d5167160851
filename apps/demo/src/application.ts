import { type Application, loadConfig, type Topology, topologyOf } from '@onetrip/api'
import { noRace, raceRunning, serviceFailed } from './errors.ts'
import { demoRoutes } from './routes/demo.ts'
import { pageRoutes } from './routes/page.ts'
import { reportRoutes } from './routes/report.ts'
import { sessionEventRoutes } from './routes/session-events.ts'

export interface DemoOptions {
  topology: Topology
  /** Unix socket of the demo service; empty: no race. */
  demoSocket: string
  /** HTML file that `/report` serves; empty: none. */
  reportFile: string
}

/** The demo page and its routes, as an application for `serve()`. */
export function demoApplication(options: DemoOptions): Omit<Application, 'authenticator'> {
  const { topology, demoSocket, reportFile } = options
  return {
    routes: sessionEventRoutes,
    errors: [noRace, raceRunning, serviceFailed],
    async publicRoutes(app) {
      await app.register(demoRoutes, { socket: demoSocket, topology })
      await app.register(reportRoutes, { file: reportFile })
      await app.register(pageRoutes)
    },
  }
}

/**
 * Reads the options from the settings of the API, and from `DEMO_SOCKET` and `REPORT_FILE`.
 *
 * @throws Error that names the invalid setting.
 */
export function demoOptions(environment: NodeJS.ProcessEnv = process.env): DemoOptions {
  const { DEMO_SOCKET = '', REPORT_FILE = '' } = environment
  return {
    topology: topologyOf(loadConfig(environment).REDIS_URL),
    demoSocket: DEMO_SOCKET,
    reportFile: REPORT_FILE,
  }
}
