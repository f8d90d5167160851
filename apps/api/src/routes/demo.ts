import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { type Static, Type } from 'typebox'
import type { Authenticator } from '../authenticator.ts'
import { Demo, RaceBody, RaceStarted, Server, WireBody, Wires } from '../demo/schemas.ts'
import { serverFacts } from '../demo/server-facts.ts'
import { DemoService } from '../demo/service.ts'
import type { Topology } from '../redis-location.ts'

export interface DemoOptions {
  /** Path of the demo service's Unix socket; empty: there is no race. */
  socket: string
  authenticator: Authenticator
  /** Whether there is `/demo/server`. */
  serverFacts: boolean
  topology: Topology
}

/** A page of another origin must not put load on this machine. */
const refuseCrossSite: onRequestHookHandler = (request, _reply, done) => {
  request.session.refuseCrossSite()
  done()
}

const EVENTS = `Server-sent events, each with JSON as its data; a lane is 0 or 1.

- \`state\` comes first: \`running\`, the \`race\` that runs, the result of the \`last\` one. The events of a race
  that runs follow, from its beginning.
- \`started\`, \`preparing\` (\`text\`).
- \`sample\`: four a second, of the lane whose turn it is.
- \`turn\`: the end of a lane's turn, with its totals. CPU times are in microseconds.
- \`done\` (sums, medians and their range, a \`sentence\`) or \`failed\` (\`message\`).`

const routes: FastifyPluginAsyncTypebox<DemoOptions> = async (app, options) => {
  const { socket, authenticator } = options
  const demo = new DemoService(socket)
  const tags = ['demo']
  app.addHook('preClose', async () => demo.endStreams())
  app.addHook('onClose', async () => demo.close())

  app.get(
    '/demo',
    {
      schema: {
        operationId: 'getDemo',
        summary: 'What the demo page can show: races, fields of a login, risk features',
        tags,
        response: { 200: Demo },
      },
    },
    async () => {
      const limits = (await demo.limits()) as Pick<Static<typeof Demo>, 'race' | 'why'>
      return {
        ...limits,
        login: textsOf(authenticator),
        server: options.serverFacts,
        riskFeatures: app.risk !== undefined,
      }
    },
  )

  app.post(
    '/demo/race',
    {
      schema: {
        operationId: 'startRace',
        summary: 'Start a race between two strategies',
        description: 'Load on this machine for about ten seconds. Its events tell what happens.',
        tags,
        body: RaceBody,
        response: { 202: RaceStarted },
        'x-errors': [403, 404, 409],
      },
      onRequest: refuseCrossSite,
    },
    async (request, reply) => {
      const started = await demo.call('POST', '/race', request.body)
      return reply.code(202).send(started as Static<typeof RaceStarted>)
    },
  )

  app.get(
    '/demo/race/events',
    {
      exposeHeadRoute: false, // its stream would never end
      logLevel: 'warn',
      schema: {
        operationId: 'watchRace',
        summary: 'The events of the races',
        description: EVENTS,
        tags,
        response: {
          200: {
            description: 'Events, as they come',
            content: {
              'text/event-stream': {
                schema: Type.Unsafe<never>(
                  Type.String({
                    examples: ['event: preparing\ndata: {"text":"Warming up"}\n\n'],
                  }),
                ),
              },
            },
          },
        },
        'x-errors': [404],
      },
    },
    async (_request, reply) => {
      const events = await demo.events()
      reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      return reply.type('text/event-stream').send(events as never)
    },
  )

  app.post(
    '/demo/wire',
    {
      schema: {
        operationId: 'traceView',
        summary: 'One page view through two strategies, as it goes over the wire to Redis',
        tags,
        body: WireBody,
        response: { 200: Wires },
        'x-errors': [403, 404, 409],
      },
      onRequest: refuseCrossSite,
    },
    async (request) => (await demo.call('POST', '/wire', request.body)) as Static<typeof Wires>,
  )

  if (!options.serverFacts) return
  const facts = serverFacts(app.store, options.topology)
  app.get(
    '/demo/server',
    {
      logLevel: 'error', // that Redis is away is logged elsewhere
      schema: {
        operationId: 'getServer',
        summary: 'The Redis server: build, threads, clients, commands',
        tags,
        response: { 200: Server },
      },
    },
    async () => await facts(),
  )
}

/** The names of the texts in the body of `POST /login`. */
function textsOf({ credentials }: Authenticator): string[] {
  const { properties = {} } = credentials as { properties?: Record<string, { type?: string }> }
  return Object.keys(properties).filter((name) => properties[name]?.type === 'string')
}

/** What the demo page shows besides the shop. */
export const demoRoutes = fp(routes, {
  name: 'demo-routes',
  dependencies: ['errors', '@onetrip/session-store'],
  encapsulate: true,
})
