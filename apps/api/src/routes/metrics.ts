import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { Type } from 'typebox'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { metrics } = app

  app.get(
    '/metrics',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readMetrics',
        summary: 'Prometheus metrics',
        tags: ['operations'],
        response: {
          200: {
            description: "Prometheus's text format",
            content: {
              'text/plain; version=0.0.4': {
                schema: Type.String({ examples: ['onetrip_info{strategy="batch"} 1\n'] }),
              },
            },
          },
        },
      },
    },
    async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metrics()),
  )
}

/** `/metrics`. docs/operations.md lists the metrics. */
export const metricsRoutes = fp(routes, {
  name: 'metrics-routes',
  dependencies: ['metrics'],
  encapsulate: true,
})
