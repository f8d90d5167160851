import { loadConfig, serve } from '@onetrip/api'
import { demoApplication, demoOptions } from './application.ts'

const ONE_DAY_SECONDS = 86_400

await serve(() => {
  const environment = { SESSION_RENEW_SECONDS: String(ONE_DAY_SECONDS), ...process.env }
  return {
    ...demoApplication(demoOptions(environment)),
    config: loadConfig(environment),
  }
})
