import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { StrategyName } from '@onetrip/api/strategies'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished } from 'vitest'
import { appOn, listen } from '../../api/test/support.ts'
import { type DemoOptions, demoApplication } from '../src/application.ts'

export { bearer, login } from '../../api/test/support.ts'

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

/** Opens an event stream of the application, and checks its response head. Closed when the current test ends. */
export async function streamFrom(app: FastifyInstance, path: string, headers = {}) {
  if (!app.server.listening) await listen(app)
  const { port } = app.server.address() as AddressInfo
  const request = get({ port, path, headers })
  onTestFinished(() => void request.destroy())
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  expect([response.statusCode, response.headers]).toMatchObject([
    200,
    { 'content-type': 'text/event-stream', 'cache-control': 'no-store' },
  ])
  let text = ''
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  const end = once(response, 'end')
  end.catch(() => {}) // the request is destroyed
  return { request, response, end, text: () => text }
}
