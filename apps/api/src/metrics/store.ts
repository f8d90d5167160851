import type { Channel } from 'node:diagnostics_channel'
import {
  type BatchTrace,
  batchChannel,
  connectionChannel,
  disconnectionChannel,
  errorChannel,
  type RetentionEvent,
  type RoundTrip,
  retentionChannel,
  roundTripChannel,
  type SessionStore,
  type StoreFailure,
} from '@onetrip/session-store'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

const BATCH_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2,
]
const BATCH_OPERATIONS = [1, 2, 4, 6, 8, 10, 12, 14, 16]

/** Errors that clients do not cause. Their counters start at 0 instead of being absent. */
const FAILURES = [
  'ONETRIP_NOT_SENT',
  'ONETRIP_OVERLOADED',
  'ONETRIP_OUTCOME_UNKNOWN',
  'ONETRIP_REFUSED',
  'ONETRIP_NOT_DURABLE',
]

/** Registers metrics of the store's diagnostics channels. Returns a function that unsubscribes. */
export function measureStore(store: SessionStore, registry: Registry): () => void {
  const registers = [registry]
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `onetrip_${name}_total`, help, labelNames, registers })
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name: `onetrip_store_batch_${name}`, help, buckets, registers })
  const roundTrips = counter('store_round_trips', 'Round trips to Redis for operations')
  const commands = counter('store_commands', 'Commands sent to Redis for operations')
  const opened = counter('store_connections_opened', 'Connections to Redis opened')
  const closed = counter('store_connections_closed', 'Pool connections that were closed or lost')
  const errors = counter('store_errors', 'Failed operations by error code', 'code')
  for (const code of FAILURES) errors.inc({ code }, 0)
  const operations = histogram(
    'operations',
    'Operations per batch (strategy batch only)',
    BATCH_OPERATIONS,
  )
  const durations = histogram(
    'duration_seconds',
    'Time from the first write of a batch to its last reply (strategy batch only)',
    BATCH_SECONDS,
  )
  const runs = counter(
    'janitor_runs',
    'Janitor runs by result: worked, idle (another process was working) or failed',
    'result',
  )
  for (const result of ['worked', 'idle', 'failed']) runs.inc({ result }, 0)
  const removed = counter(
    'janitor_removed',
    'Removed by the janitor, by kind: session, item (its view count) or leftover',
    'kind',
  )
  const kinds = { session: 'evicted', item: 'itemsDropped', leftover: 'swept' } as const
  for (const kind in kinds) removed.inc({ kind }, 0)
  const lastRun = new Gauge({
    name: 'onetrip_janitor_last_run_timestamp_seconds',
    help: 'Time of the last janitor run of this process that worked; 0: none yet',
    registers,
  })
  new Gauge({
    name: 'onetrip_store_in_flight',
    help: 'Operations sent to Redis whose replies are outstanding (pooled strategies)',
    registers,
    collect() {
      this.set(store.info.inFlight)
    },
  })
  new Gauge({
    name: 'onetrip_store_pool_connections',
    help: 'Pool connections by state: ready or down (pooled strategies)',
    labelNames: ['state'],
    registers,
    collect() {
      const { connections, ready } = store.info
      this.set({ state: 'ready' }, ready)
      this.set({ state: 'down' }, connections - ready)
    },
  })

  const subscriptions = [
    on<RoundTrip>(roundTripChannel, (roundTrip) => {
      roundTrips.inc()
      commands.inc(roundTrip.commands)
    }),
    on<BatchTrace>(batchChannel.asyncEnd, (batch) => {
      operations.observe(batch.operations)
      durations.observe(batch.durationMs / 1000)
    }),
    on(connectionChannel, () => opened.inc()),
    on(disconnectionChannel, () => closed.inc()),
    on<StoreFailure>(errorChannel, ({ code }) => errors.inc({ code: code ?? 'unknown' })),
    on<RetentionEvent>(retentionChannel, (event) => {
      if (event.type === 'step') {
        for (const [kind, count] of Object.entries(kinds)) removed.inc({ kind }, event[count])
        return
      }
      const result = event.type === 'failure' ? 'failed' : event.worked ? 'worked' : 'idle'
      runs.inc({ result })
      if (result === 'worked') lastRun.setToCurrentTime()
    }),
  ]
  return () => {
    for (const unsubscribe of subscriptions) unsubscribe()
  }
}

/** Returns a function that unsubscribes. */
function on<Message>(channel: Channel, listen: (message: Message) => void): () => void {
  const listener = (message: unknown) => listen(message as Message)
  channel.subscribe(listener)
  return () => void channel.unsubscribe(listener)
}
