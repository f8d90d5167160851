import { once } from 'node:events'
import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { parseLocation } from '@onetrip/cluster'
import { isLocal } from '@onetrip/stack/address.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import type { Done, RaceInput, RaceLimits, WireInput } from '../events.ts'
import { imageOf } from '../result/image.ts'
import { RaceFeed } from './feed.ts'
import { checkLanes, checkRace, Refusal } from './input.ts'
import { pngOf } from './png.ts'
import { clusterRace, type RaceOptions, RaceTrack, raceLimits } from './race.ts'
import { WireTap } from './wire.ts'

export interface DemoServiceOptions extends RaceOptions {
  /** Path of the Unix socket to listen on. */
  socket: string
  /** Default: `raceLimits`. */
  limits?: RaceLimits
  /** Starts the lanes of the first race when somebody begins to listen. Default false. */
  prepares?: boolean
}

/** @param id What follows `?` in the URL: the id of a result. */
type Route = (request: IncomingMessage, response: ServerResponse, id: string) => unknown

const HEARTBEAT_MS = 15_000
const MAX_WAITING = 5

/**
 * Serves the race and the wire over HTTP on a Unix socket: `GET /race`, `POST /race`, `GET /race/events`,
 * `GET /race/result?<id>`, `GET /race/image?<id>` (PNG) and `POST /wire`. The API forwards requests to it. Only the user of this process can connect.
 *
 * @throws the error of `node:net` if it cannot listen.
 */
export async function openDemoService(serviceOptions: DemoServiceOptions) {
  const { socket, limits: given = raceLimits, prepares = false, ...options } = serviceOptions
  const onCluster = parseLocation(options.redis).cluster !== undefined
  const limits = { ...given, ...(onCluster && clusterRace) }
  const feed = new RaceFeed()
  const track = new RaceTrack(options, feed)
  const tap = new WireTap(options)
  const stopping = new AbortController()
  const ending = new AbortController()
  const why = whyNoRace(options.redis)
  /** The race or the traces in progress. They run one after the other, because they would distort each other. */
  let busy: Promise<unknown> = Promise.resolve()
  let waiting = 0
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const done = busy.then(work)
    busy = done.catch(() => {})
    return done
  }

  const resultOf = async (id: string): Promise<Done> => {
    const result = await track.results.find(id)
    if (result === undefined) throw new Refusal(404, NO_RESULT)
    return result
  }

  const routes: Record<string, Route> = {
    'GET /race': () => (why ? { race: null, why } : { race: limits }),
    'POST /race': async (request, response) => {
      const input = (await json(request)) as RaceInput
      checkRace(input, limits)
      if (feed.running) throw new Refusal(409, RUNNING)
      response.statusCode = 202
      return { id: startRace(input) }
    },
    'GET /race/result': (_request, _response, id) => resultOf(id),
    'GET /race/image': async (_request, response, id) => {
      const image = await pngOf(imageOf(await resultOf(id)))
      response.writeHead(200, { 'content-type': 'image/png' }).end(image)
    },
    'GET /race/events': (_, response) => {
      if (prepares && !feed.running) void inTurn(() => track.prepare(stopping.signal))
      sendEvents(feed, response, ending.signal)
    },
    'POST /wire': async (request) => {
      if (onCluster) throw new Refusal(404, NO_WIRE)
      const input = (await json(request)) as WireInput
      checkLanes(input, limits)
      if (feed.running) throw new Refusal(409, RUNNING)
      if (waiting >= MAX_WAITING)
        throw new Refusal(
          503,
          'Too many requests are waiting for the wire. Try again in a few seconds.',
        )
      waiting++
      try {
        return { lanes: await inTurn(() => tap.trace(input, stopping.signal)) }
      } catch (error) {
        throw new Refusal(503, messageOf(error))
      } finally {
        waiting--
      }
    },
  }

  const startRace = (input: RaceInput): string => {
    const started = feed.start(input, limits)
    void inTurn(() => track.run(started, stopping.signal))
    return started.id
  }

  const server = createServer(async (request, response) => {
    try {
      const [path, id = ''] = (request.url ?? '').split('?')
      const route = routes[`${request.method} ${path}`]
      if (!route) throw new Refusal(404, 'This route does not exist.')
      if (why && route !== routes['GET /race']) throw new Refusal(404, why)
      const body = await route(request, response, id)
      if (body !== undefined) send(response, response.statusCode, body)
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 500
      send(response, status, { message: messageOf(error) })
    }
  })
  await rm(socket, { force: true }) // left by a killed service
  server.listen(socket)
  await once(server, 'listening')
  await chmod(socket, 0o600)

  return {
    feed,
    /** Ends the running race, the event streams and the lanes. */
    async close(): Promise<void> {
      stopping.abort(new Error('The demo service is stopping.'))
      server.close()
      await busy
      ending.abort()
      await Promise.all([track.stop(), tap.stop()])
      server.closeAllConnections()
      await rm(socket, { force: true })
    },
  }
}

const RUNNING = 'A race is running. Try again when it has ended.'

const NO_RESULT = 'There is no result of a race with this id. The latest 100 are kept.'

const NO_WIRE =
  'The wire is not available on a cluster: clients connect to the nodes directly, not through the relay that records traffic.'

/** Why there is no race: the relay and the load generator work only on this machine and without TLS. */
function whyNoRace(redis: string): string | undefined {
  const { cluster, redis: single } = parseLocation(redis)
  const urls = cluster?.nodes.map((address) => `redis://${address}`) ?? [redis]
  if ((cluster ?? single)?.tls) {
    return 'Redis uses TLS, which the race does not support.'
  }
  if (urls.every(isLocal)) return undefined
  return 'Redis is on another machine, but the race may put load on this machine only.'
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.end()
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Sends events until the client disconnects or the service stops. */
function sendEvents(feed: RaceFeed, response: ServerResponse, ending: AbortSignal): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  const unsubscribe = feed.subscribe(({ name, data }) =>
    response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`),
  )
  const heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT_MS)
  const end = () => response.end()
  ending.addEventListener('abort', end)
  response.once('close', () => {
    unsubscribe()
    clearInterval(heartbeat)
    ending.removeEventListener('abort', end)
  })
}
