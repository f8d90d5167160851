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
const BATCH_UPDATES = [1, 2, 4, 6, 8, 10, 12, 14, 16]

/** The errors that are no mistake of the caller: they are served from the start, as 0. */
const FAILURES = [
  'ONETRIP_NOT_SENT',
  'ONETRIP_OVERLOADED',
  'ONETRIP_OUTCOME_UNKNOWN',
  'ONETRIP_REFUSED',
]

/** Counts what the store says on its diagnostics channels. Returns what ends that. */
export function measureStore(store: SessionStore, registry: Registry): () => void {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const roundTrips = counter('onetrip_store_round_trips_total', 'Round trips of updates to Redis')
  const commands = counter('onetrip_store_commands_total', 'Commands of updates sent to Redis')
  const opened = counter(
    'onetrip_store_connections_opened_total',
    'Connections to Redis that were opened',
  )
  const closed = counter(
    'onetrip_store_connections_closed_total',
    'Connections of the pool that were closed or lost',
  )
  const errors = new Counter({
    name: 'onetrip_store_errors_total',
    help: 'Updates that ended with an error, by code',
    labelNames: ['code'],
    registers,
  })
  for (const code of FAILURES) errors.inc({ code }, 0)
  const updates = new Histogram({
    name: 'onetrip_store_batch_updates',
    help: 'Updates that went to Redis together; its count is the batches (strategy batch only)',
    buckets: BATCH_UPDATES,
    registers,
  })
  const durations = new Histogram({
    name: 'onetrip_store_batch_duration_seconds',
    help: 'From the first write of a batch to its last reply (strategy batch only)',
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
      updates.observe(batch.updates)
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

/** Subscribes. Returns what unsubscribes. */
function on<Message>(channel: Channel, listen: (message: Message) => void): () => void {
  const listener = (message: unknown) => listen(message as Message)
  channel.subscribe(listener)
  return () => void channel.unsubscribe(listener)
}

function measurePool(store: SessionStore, registry: Registry): void {
  new Gauge({
    name: 'onetrip_store_in_flight',
    help: 'Updates that were sent and whose replies are not there (pooled strategies)',
    registers: [registry],
    collect() {
      this.set(store.pool?.inFlight ?? 0)
    },
  })
  new Gauge({
    name: 'onetrip_store_pool_connections',
    help: 'Connections of the pool, by state: ready or down (pooled strategies)',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { connections, ready } = store.pool ?? { connections: 0, ready: 0 }
      this.set({ state: 'ready' }, ready)
      this.set({ state: 'down' }, connections - ready)
    },
  })
}

function janitorMetrics(registry: Registry): (event: RetentionEvent) => void {
  const registers = [registry]
  const runs = new Counter({
    name: 'onetrip_janitor_runs_total',
    help: 'Runs of the janitor, by result: worked, idle (another process was at it) or failed',
    labelNames: ['result'],
    registers,
  })
  for (const result of ['worked', 'idle', 'failed']) runs.inc({ result }, 0)
  const removed = new Counter({
    name: 'onetrip_janitor_removed_total',
    help: 'What the janitor removed, by kind: session, item (its count) or leftover',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of ['session', 'item', 'leftover']) removed.inc({ kind }, 0)
  const lastRun = new Gauge({
    name: 'onetrip_janitor_last_run_timestamp_seconds',
    help: 'When the janitor of this process last worked; 0: not yet',
    aggregator: 'max',
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
