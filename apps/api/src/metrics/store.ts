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
]

/** Registers metrics of the store's diagnostics channels. Returns a function that unsubscribes. */
export function measureStore(store: SessionStore, registry: Registry): () => void {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const roundTrips = counter(
    'onetrip_store_round_trips_total',
    'Round trips to Redis for operations',
  )
  const commands = counter('onetrip_store_commands_total', 'Commands sent to Redis for operations')
  const opened = counter('onetrip_store_connections_opened_total', 'Connections to Redis opened')
  const closed = counter(
    'onetrip_store_connections_closed_total',
    'Pool connections that were closed or lost',
  )
  const errors = new Counter({
    name: 'onetrip_store_errors_total',
    help: 'Failed operations by error code',
    labelNames: ['code'],
    registers,
  })
  for (const code of FAILURES) errors.inc({ code }, 0)
  const operations = new Histogram({
    name: 'onetrip_store_batch_operations',
    help: 'Operations per batch (strategy batch only)',
    buckets: BATCH_OPERATIONS,
    registers,
  })
  const durations = new Histogram({
    name: 'onetrip_store_batch_duration_seconds',
    help: 'Time from the first write of a batch to its last reply (strategy batch only)',
    buckets: BATCH_SECONDS,
    registers,
  })
  measurePool(store, registry)

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
    on(retentionChannel, janitorMetrics(registry)),
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

function measurePool(store: SessionStore, registry: Registry): void {
  new Gauge({
    name: 'onetrip_store_in_flight',
    help: 'Operations sent to Redis whose replies are outstanding (pooled strategies)',
    registers: [registry],
    collect() {
      this.set(store.info.inFlight)
    },
  })
  new Gauge({
    name: 'onetrip_store_pool_connections',
    help: 'Pool connections by state: ready or down (pooled strategies)',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { connections, ready } = store.info
      this.set({ state: 'ready' }, ready)
      this.set({ state: 'down' }, connections - ready)
    },
  })
}

function janitorMetrics(registry: Registry): (event: RetentionEvent) => void {
  const registers = [registry]
  const runs = new Counter({
    name: 'onetrip_janitor_runs_total',
    help: 'Janitor runs by result: worked, idle (another process was working) or failed',
    labelNames: ['result'],
    registers,
  })
  for (const result of ['worked', 'idle', 'failed']) runs.inc({ result }, 0)
  const removed = new Counter({
    name: 'onetrip_janitor_removed_total',
    help: 'Removed by the janitor, by kind: session, item (its view count) or leftover',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of ['session', 'item', 'leftover']) removed.inc({ kind }, 0)
  const lastRun = new Gauge({
    name: 'onetrip_janitor_last_run_timestamp_seconds',
    help: 'Time of the last janitor run of this process that worked; 0: none yet',
    registers,
  })
  return (event) => {
    if (event.type === 'failure') {
      runs.inc({ result: 'failed' })
    } else if (event.type === 'step') {
      removed.inc({ kind: 'session' }, event.evicted)
      removed.inc({ kind: 'item' }, event.itemsDropped)
      removed.inc({ kind: 'leftover' }, event.swept)
    } else {
      runs.inc({ result: event.worked ? 'worked' : 'idle' })
      if (event.worked) lastRun.setToCurrentTime()
    }
  }
}
