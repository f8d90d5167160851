import { dirname, join, resolve } from 'node:path'
import { SessionStore } from '@onetrip/session-store'
import { newSecret, places, writableFolder } from '@onetrip/stack/places.ts'
import { openRelay, type Traffic } from '@onetrip/stack/relay/relay.ts'
import { endpoint } from '@onetrip/stack/relay/units.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { until } from '@onetrip/stack/until.ts'
import { Command } from 'commander'
import { exchangesOf } from '../../../apps/demo/src/service/trace.ts'
import type { Invocation } from '../command.ts'
import { sendingOf } from '../compared-strategies.ts'
import { startRedisServer } from '../drivers/redis/server.ts'
import { outputFile } from '../reporting/outputs.ts'
import { drawing, type Recorded } from './drawing.ts'

const ROUND_TRIP_MS = 1
/** The fastest is drawn: other programs delay the others. */
const RECORDS = 21
const folder = dirname(places().report)

/** `npm run load -- wire`: draws the wire between store and Redis; README's with `--output docs/images/wire.svg`. */
export const wireCommand = ({ interrupt }: Invocation): Command =>
  new Command('wire')
    .description('draw what a page view sends to Redis, with naive and with batch')
    .option('--output <file>', 'the SVG image to write', join(folder, 'wire.svg'))
    .action(async ({ output }: { output: string }) => {
      if (dirname(resolve(output)) === folder) await writableFolder(folder)
      const image = await outputFile('--output', output)
      const records = [
        await recordViews('naive', 1, interrupt),
        await recordViews('batch', 2, interrupt),
      ]
      await image.save(drawing(records))
      print(`The image: ${image.path}`)
    })

/** Records the traffic of page views at the same time, each of another session, over a link of one millisecond. */
export async function recordViews(
  strategy: 'naive' | 'batch',
  requests: number,
  signal: AbortSignal,
): Promise<Recorded> {
  await using undo = new AsyncDisposableStack()
  const server = await startRedisServer({ build: 'patched' }, signal, () => {})
  undo.defer(() => server.stop())
  const traffic: Traffic[] = []
  const link = { roundTrip: ROUND_TRIP_MS, bandwidth: Number.POSITIVE_INFINITY }
  const to = endpoint(server.socket)
  const listen = { host: '127.0.0.1', port: 0 }
  const relay = await openRelay(
    { ...link, listen, to },
    () => {},
    (one) => traffic.push(one),
  )
  undo.defer(() => relay.close())
  const store = new SessionStore({
    ...sendingOf(strategy, { redis: `redis://${relay.address}`, poolSize: 1, deadlineMs: 10_000 }),
    tokens: { secrets: [newSecret()] },
    janitor: 'elsewhere',
  })
  undo.defer(() => store.close())
  await store.ready()
  const count = (kind: Traffic['kind']) => traffic.filter((one) => one.kind === kind).length
  const isQuiet = () => count('connect') <= count('close')
  const logins = Array.from({ length: requests }, (_, index) => store.login(`user-${index}`))
  const sessions = await Promise.all(logins)
  const records: Recorded[] = []
  while (records.length < RECORDS) {
    signal.throwIfAborted()
    await until(isQuiet, { timeoutMs: 2_000, everyMs: 5, signal })
    traffic.length = 0
    const sentAt = performance.now()
    await Promise.all(sessions.map(({ token }) => store.recordView(token, 'book')))
    const endUs = (performance.now() - sentAt) * 1_000
    await until(isQuiet, { timeoutMs: 2_000, everyMs: 5, signal })
    const { exchanges } = exchangesOf(traffic, { sentAt, sessionId: '<session>' })
    records.push({ strategy, requests, endUs, exchanges })
  }
  return records.toSorted((a, b) => a.endUs - b.endUs)[0] as Recorded
}
