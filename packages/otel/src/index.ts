import {
  type BatchTrace,
  batchChannel,
  type OperationTrace,
  operationChannel,
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
 * Adds a span per store operation of a traced request, and a span per batch that contains such an operation. The
 * batch span is a child of its first operation and links to all its operations; each operation links to its batch.
 *
 * @returns Function that stops tracing.
 */
export function traceStore(tracer: Tracer): () => void {
  const operations = new WeakMap<OperationTrace, Span>()
  const batches = new WeakMap<BatchTrace, Span>()

  const operationListener = {
    ...nothing,
    start(operation: OperationTrace) {
      // No active span: an operation of the janitor, or of a request that is not sampled.
      if (!trace.getActiveSpan()?.isRecording()) return
      const { commands } = operation
      const span = tracer.startSpan('redis operation', {
        kind: SpanKind.CLIENT,
        attributes: {
          'db.system.name': 'redis',
          'db.operation.batch.size': commands.length,
          'db.query.summary': commands.join(' ').slice(0, MAX_SUMMARY_LENGTH),
        },
      })
      operations.set(operation, span)
    },
    asyncEnd(operation: OperationTrace) {
      const span = operations.get(operation)
      if (operation.errorCode !== undefined) fail(span, operation.errorCode)
      span?.end()
    },
  }

  const batchListener = {
    ...nothing,
    start(batch: BatchTrace) {
      const callers = batch.traces.flatMap((operation) => operations.get(operation) ?? [])
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
            'onetrip.batch.operations': batch.operations,
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

  operationChannel.subscribe(operationListener)
  batchChannel.subscribe(batchListener)
  return () => {
    operationChannel.unsubscribe(operationListener)
    batchChannel.unsubscribe(batchListener)
  }
}

/** Unused events of a tracing channel; the type requires all of them. */
const nothing = { end() {}, asyncStart() {}, error() {} }

function fail(span: Span | undefined, type: string): void {
  span?.setAttribute('error.type', type)
  span?.setStatus({ code: SpanStatusCode.ERROR })
}
