import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import fp from 'fastify-plugin'

/**
 * Adds a span per request. Its name is the route, not the URL, which may contain a session id. A
 * `traceparent` header makes the span part of the caller's trace.
 */
export const requestSpans = fp<{ tracer: Tracer }>(
  async (app, { tracer }) => {
    app.addHook('onRequest', (request, { raw: response }, done) => {
      const { method, headers } = request
      const route = request.routeOptions.url
      const parent =
        headers.traceparent === undefined
          ? ROOT_CONTEXT
          : propagation.extract(ROOT_CONTEXT, headers)
      const span = tracer.startSpan(
        route === undefined ? method : `${method} ${route}`,
        {
          kind: SpanKind.SERVER,
          attributes: {
            'http.request.method': method,
            ...(route !== undefined && { 'http.route': route }),
          },
        },
        parent,
      )
      if (span.isRecording()) {
        response.once('close', () => {
          const { statusCode } = response
          if (response.headersSent) span.setAttribute('http.response.status_code', statusCode)
          if (!response.writableFinished) span.setAttribute('error.type', 'aborted')
          else if (statusCode >= 500) {
            span.setAttribute('error.type', String(statusCode))
            span.setStatus({ code: SpanStatusCode.ERROR })
          }
          span.end()
        })
      }
      // The context also covers reading the body.
      context.with(trace.setSpan(parent, span), done)
    })
  },
  { name: 'request-spans' },
)
