import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/**
 * A span for each request, named by its route: no URL, which may have a session's id in it. A
 * `traceparent` header makes it part of the caller's trace.
 */
export const requestSpans = fp<{ tracer: Tracer }>(
  async (app, { tracer }) => {
    const contexts = new WeakMap<FastifyRequest, Context>()

    app.addHook('onRequest', (request, { raw: response }, done) => {
      const { method } = request
      const route = request.routeOptions.url
      const parent = propagation.extract(ROOT_CONTEXT, request.headers)
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
      const own = trace.setSpan(parent, span)
      contexts.set(request, own)
      context.with(own, done)
    })

    // Events of the socket, by which a body is read, have no context.
    app.addHook('preValidation', (request, _reply, done) =>
      context.with(contexts.get(request) ?? ROOT_CONTEXT, done),
    )
  },
  { name: 'request-spans' },
)
