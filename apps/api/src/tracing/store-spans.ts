import {
  type BatchTrace,
  batchChannel,
  type UpdateTrace,
  updateChannel,
} from '@onetrip/session-store'
import {
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'

const MAX_SUMMARY_LENGTH = 255

/**
 * Adds a span per store update of a traced request, and a span per batch that contains such an update. The
 * batch span is a child of its first update and links to all its updates; each update links to its batch.
 *
 * @returns Function that stops tracing.
 */
export function traceStore(tracer: Tracer): () => void {
  const updates = new WeakMap<UpdateTrace, Span>()
  const batches = new WeakMap<BatchTrace, Span>()

  const updateListener = {
    ...nothing,
    start(update: UpdateTrace) {
      // No active span: an update of the janitor, or of a request that is not sampled.
      if (!trace.getActiveSpan()?.isRecording()) return
      const { commands } = update
      const span = tracer.startSpan('redis update', {
        kind: SpanKind.CLIENT,
        attributes: {
          'db.system.name': 'redis',
          'db.operation.batch.size': commands.length,
          'db.query.summary': commands.join(' ').slice(0, MAX_SUMMARY_LENGTH),
        },
      })
      updates.set(update, span)
    },
    asyncEnd(update: UpdateTrace) {
      const span = updates.get(update)
      if (update.errorCode !== undefined) fail(span, update.errorCode)
      span?.end()
    },
  }

  const batchListener = {
    ...nothing,
    start(batch: BatchTrace) {
      const callers = batch.traces.flatMap((update) => updates.get(update) ?? [])
      const [first] = callers
      if (first === undefined) return
      const span = tracer.startSpan(
        'redis batch',
        {
          kind: SpanKind.CLIENT,
          links: callers.map((caller) => ({ context: caller.spanContext() })),
          attributes: {
            'db.system.name': 'redis',
            'db.operation.batch.size': batch.commands,
            'onetrip.batch.updates': batch.updates,
          },
        },
        trace.setSpan(context.active(), first),
      )
      for (const caller of callers) caller.addLink({ context: span.spanContext() })
      batches.set(batch, span)
    },
    asyncEnd(batch: BatchTrace) {
      const span = batches.get(batch)
      if (batch.failed > 0) fail(span, 'failed')
      span?.end()
    },
  }

  updateChannel.subscribe(updateListener)
  batchChannel.subscribe(batchListener)
  return () => {
    updateChannel.unsubscribe(updateListener)
    batchChannel.unsubscribe(batchListener)
  }
}

/** Unused events of a tracing channel; the type requires all of them. */
const nothing = { end() {}, asyncStart() {}, error() {} }

function fail(span: Span | undefined, type: string): void {
  span?.setAttribute('error.type', type)
  span?.setStatus({ code: SpanStatusCode.ERROR })
}
