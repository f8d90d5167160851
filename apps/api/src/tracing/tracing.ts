import { hostname } from 'node:os'
import { FastifyOtelInstrumentation } from '@fastify/otel'
import { traceStore } from '@onetrip/otel'
import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../read-settings.ts'
import { settlesWithin } from '../settles-within.ts'

// serve.ts imports this file dynamically, and only if an export endpoint is set.

export interface Tracing {
  /** Adds a span per request. Call it before other plugins are registered. */
  traceRequests(app: FastifyInstance): Promise<void>
  /** Fields for a log line: the ids of the active span, if there is one. */
  logFields(): Record<string, string>
  /** Exports the remaining spans, for at most `timeoutMs`, and stops tracing. Never rejects. */
  close(timeoutMs: number): Promise<void>
}

const LOG_EVERY_MS = 60_000

/**
 * Traces requests, store operations and batches, and exports the spans with OTLP (HTTP, protobuf).
 *
 * @param onProblem Called when an export fails, at most once a minute.
 */
export function startTracing(config: Config, onProblem: (error: Error) => void): Tracing {
  loadDotenv()
  const url = config.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/?$/, '/v1/traces')
  // OpenTelemetry reads the variables for headers, timeout, compression, certificates, and the name of the service.
  const exporter = new OTLPTraceExporter({ url })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'onetrip-api',
      'host.name': hostname(),
      'process.pid': process.pid,
    }).merge(detectResources({ detectors: [envDetector] })),
    // Follows the traceparent header of a request.
    sampler: new ParentBasedSampler({
      root: new TraceIdRatioBasedSampler(config.OTEL_TRACES_SAMPLER_ARG),
    }),
    spanProcessors: [new BatchSpanProcessor({ exporter: reporting(exporter, onProblem) })],
  })
  // Global, so that spans of the application become part of the traces.
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())

  const stopTracingStore = traceStore(provider.getTracer('onetrip'))
  // package.json overrides the plugin's @opentelemetry/core (2.x), which does not allow our @opentelemetry/api.
  const requests = new FastifyOtelInstrumentation({
    instrumentHooks: false,
    instrumentHandler: false,
    recordExceptions: false,
    requestHook(span, { method, routeOptions: { url } }) {
      span.updateName(url === undefined ? method : `${method} ${url}`)
      // By default the path of the request, which may contain a session id.
      span.setAttribute('url.path', url ?? '')
    },
  })
  return {
    async traceRequests(app) {
      await app.register(requests.plugin())
      // The plugin marks every span as failed whose handler threw, such as for a 404.
      app.addHook('onSend', (request, { statusCode }, _payload, done) => {
        if (statusCode < 500) request.opentelemetry().span?.setStatus({ code: SpanStatusCode.OK })
        done()
      })
    },
    logFields() {
      const span = trace.getActiveSpan()?.spanContext()
      return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
    },
    async close(timeoutMs) {
      stopTracingStore()
      await settlesWithin(provider.shutdown(), timeoutMs).catch(() => {}) // onProblem has been called
    },
  }
}

/** Loads `.env` for the variables that only OpenTelemetry reads. The environment takes precedence. */
function loadDotenv(): void {
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Wraps the exporter to report its errors, which OpenTelemetry does not expose. */
function reporting(exporter: SpanExporter, onProblem: (error: Error) => void): SpanExporter {
  let reportedAt = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error && performance.now() >= reportedAt + LOG_EVERY_MS) {
          reportedAt = performance.now()
          onProblem(result.error)
        }
        done(result)
      })
    },
    forceFlush: async () => await exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}
