import { join } from 'node:path'
import { unixUrl } from '@onetrip/stack/address.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import type { TestRedis } from '@onetrip/stack/testing/redis.ts'
import { Client } from 'undici'
import { onTestFinished } from 'vitest'
import type { RaceEvent, RaceLimits } from '../../src/events.ts'
import { raceLimits } from '../../src/service/race.ts'
import { openDemoService } from '../../src/service/service.ts'
import { raceEvents } from '../page/race-events.ts'

/** With short turns. */
const limits: RaceLimits = { ...raceLimits, turnSeconds: 0.3 }

/** A race with little load. */
export const input = { lanes: ['naive', 'batch'], connections: 1, distanceMs: 0 }

/** Opens a demo service in this process for a Redis (or for `url`). Closed after the current test. */
export async function demoOn(
  { socket: redis }: Pick<TestRedis, 'socket'>,
  { password, url: given, rounds = 2 }: { password?: string; url?: string; rounds?: number } = {},
) {
  const folder = await temporaryFolder()
  const socket = join(folder, 'demo.sock')
  const url = given ?? unixUrl(redis)
  const redisUrl = password ? url.replace('://', `://default:${password}@localhost`) : url
  const service = await openDemoService({
    socket,
    limits: { ...limits, rounds },
    redis: redisUrl,
    monitorUrls: [redisUrl],
    sessionSecret: newSecret(),
    results: join(folder, 'races'),
  })
  onTestFinished(() => service.close())
  return { ...clientOf(socket), service, socket }
}

/** A client of a demo service. */
export function clientOf(socketPath: string) {
  const open = () => new Client('http://demo', { socketPath, bodyTimeout: 0 })
  const send = async (method: 'GET' | 'POST', path: string, body?: unknown) => {
    const client = open()
    try {
      const text = body === undefined ? null : JSON.stringify(body)
      const answer = await client.request({ method, path, body: text })
      return { status: answer.statusCode, body: (await answer.body.json()) as never }
    } finally {
      await client.destroy()
    }
  }
  return {
    send,
    /** Yields the events from now on. Leaving the loop closes the stream. */
    async *events(): AsyncGenerator<RaceEvent> {
      const client = open()
      try {
        const { body } = await client.request({ method: 'GET', path: '/race/events' })
        yield* raceEvents(body.setEncoding('utf8'))
      } finally {
        await client.destroy()
      }
    },
  }
}

/** Collects events up to and including the first with one of the names. */
export async function eventsUntil(
  events: AsyncIterable<RaceEvent>,
  ...names: RaceEvent['name'][]
): Promise<RaceEvent[]> {
  const seen: RaceEvent[] = []
  for await (const event of events) {
    seen.push(event)
    if (names.includes(event.name)) break
  }
  return seen
}
