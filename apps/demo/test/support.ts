import { fileURLToPath } from 'node:url'
import type { StrategyName } from '@onetrip/api/variants'
import type { FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'
import { appOn } from '../../api/test/support.ts'
import { type DemoOptions, demoApplication } from '../src/application.ts'

export { bearer, login, secret } from '../../api/test/support.ts'

/** The entry file of the demo. */
export const demoProgram = fileURLToPath(new URL('../src/server.ts', import.meta.url))

interface TestOptions extends Partial<DemoOptions> {
  strategy?: StrategyName
}

/** Builds the demo on this Redis. `close` also closes its store. */
export function demoOn(socket: string, options: TestOptions = {}): Promise<FastifyInstance> {
  const { strategy = 'batch', ...changed } = options
  const application = demoApplication({
    topology: 'single',
    demoSocket: '',
    reportFile: '',
    ...changed,
  })
  return appOn(socket, { strategy, ...application })
}

/** Like `demoOn`; waits for Redis, and closes the application when the current test ends. */
export async function demoForThisTest(
  socket: string,
  options: TestOptions = {},
): Promise<FastifyInstance> {
  const app = await demoOn(socket, options)
  onTestFinished(() => app.close())
  await app.store.ready()
  return app
}
