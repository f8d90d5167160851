import { readFileSync } from 'node:fs'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Topology } from '@onetrip/api'
import type { onRequestHookHandler } from 'fastify'
import type { Static } from 'typebox'
import { Demo, RaceBody, RaceStarted, WireBody, Wires } from '../events.ts'
import { Server, serverFacts } from '../server-facts.ts'
import { DemoService } from '../service-client.ts'
import { eventStream, sendEvents } from './event-stream.ts'
import { resultRoutes } from './result.ts'

interface DemoOptions {
  /** Unix socket of the demo service; empty: no race. */
  socket: string
  topology: Topology
}

/** Pages of other origins must not start load on this machine. */
const rejectCrossSite: onRequestHookHandler = (request, _reply, done) => {
  request.session.refuseCrossSite()
  done()
}

const EVENTS = `Server-sent events with JSON data. Lanes are numbered from 0.

- \`state\` is the first event: whether a race is \`running\`, that \`race\`, and the result of the \`last\` one. If a
  race is running, all its events since its start follow.
- \`started\`, \`preparing\` (\`text\`).
- \`sample\`: four per second, for the lane whose turn it is.
- \`turn\`: end of a lane's turn, with its totals. CPU times are in microseconds.
- \`done\` or \`failed\` (\`message\`). \`done\` has sums, medians and their range, a \`sentence\`, with more than two
  lanes a sentence for each step (\`steps\`), \`disturbed\` (a warning or null), and the \`command\` that repeats the race
  in the terminal (null on a cluster and in Compose). \`/race/<id>\` is the page of the result.`

const { repository: { url: repository = '' } = {} } = JSON.parse(
  readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'),
) as { repository?: { url?: string } }

/** Routes of the demo page: race, wire and Redis server. */
export const demoRoutes: FastifyPluginAsyncTypebox<DemoOptions> = async (
  app,
  { socket, topology },
) => {
  const demo = new DemoService(socket)
  const tags = ['demo']
  app.addHook('preClose', async () => demo.endStreams())
  app.addHook('onClose', async () => demo.close())

  app.get(
    '/demo',
    {
      schema: {
        operationId: 'getDemo',
        summary: 'Get the limits of a race',
        tags,
        response: { 200: Demo },
      },
    },
    async () => ({ ...(await demo.limits()), ...(repository && { repository }) }),
  )

  app.post(
    '/demo/race',
    {
      schema: {
        operationId: 'startRace',
        summary: 'Start a race between two to four strategies',
        description:
          'Runs load on this machine for about ten seconds (four strategies: twenty). `GET /demo/race/events` streams its events.',
        tags,
        body: RaceBody,
        response: { 202: RaceStarted },
      },
      onRequest: rejectCrossSite,
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
        summary: 'Stream the events of races',
        description: EVENTS,
        tags,
        response: eventStream('event: preparing\ndata: {"text":"Warming up"}\n\n'),
      },
    },
    async (_request, reply) => sendEvents(reply, await demo.events()),
  )

  app.post(
    '/demo/wire',
    {
      schema: {
        operationId: 'traceView',
        summary: 'Trace one page view with two strategies between API and Redis',
        tags,
        body: WireBody,
        response: { 200: Wires },
      },
      onRequest: rejectCrossSite,
    },
    async (request) => (await demo.call('POST', '/wire', request.body)) as Wires,
  )

  await app.register(resultRoutes, { demo })

  const facts = serverFacts(app.store, topology)
  app.get(
    '/demo/server',
    {
      logLevel: 'error', // no warning per poll: the API logs an outage once
      schema: {
        operationId: 'getServer',
        summary: 'Get data about the Redis server: build, threads, clients, commands',
        tags,
        response: { 200: Server },
      },
    },
    async () => await facts(),
  )
}
