import swagger from '@fastify/swagger'
import { cookieName } from '@onetrip/session-store/fastify'
import fp from 'fastify-plugin'
import type { OpenAPIV3_1 } from 'openapi-types'
import type { ErrorKind } from '../errors.ts'
import { errorResponses, withErrors } from '../openapi-errors.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** Error statuses specific to this route. `withErrors` adds the common ones. */
    'x-errors'?: readonly number[]
  }
}

const DESCRIPTION = `Login sessions, recent sessions and viewed items in Redis. Recording a view takes one round trip.

All errors have the same shape, and a \`code\` from a fixed list. This includes requests that match no route:
400 (not HTTP, or a malformed path), 404, 405, 408 and 431.`

// The plugin's default has upgrade-insecure-requests, with which the page stays empty over plain HTTP.
const CONTENT_SECURITY_POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'", "'unsafe-inline'"],
  'img-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
}

interface OpenapiOptions {
  secureCookie: boolean
  /** The application's own errors. */
  errors?: readonly ErrorKind[] | undefined
}

/** Serves `/openapi.json`, generated from the routes' schemas, and Swagger UI at `/docs`. */
export const openapiPlugin = fp<OpenapiOptions>(
  async (app, { secureCookie, errors = [] }) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: { title: 'Onetrip', version: '0.1.0', description: DESCRIPTION },
        servers: [{ url: '/' }],
        tags: [
          { name: 'sessions', description: 'Login and sessions' },
          { name: 'views', description: 'Viewed items' },
          { name: 'data', description: 'Session data of the application' },
          { name: 'operations', description: 'Health checks and metrics' },
        ],
        components: {
          securitySchemes: {
            bearer: { type: 'http', scheme: 'bearer', description: 'The token of POST /login' },
            cookie: { type: 'apiKey', in: 'cookie', name: cookieName({ secure: secureCookie }) },
          },
          ...errorResponses(errors),
        } as OpenAPIV3_1.ComponentsObject,
      },
      convertConstToEnum: false,
      transformObject: (document) =>
        withErrors((document as { openapiObject: OpenAPIV3_1.Document }).openapiObject),
    })

    // Imported only if it is served.
    const { default: swaggerUi } = await import('@fastify/swagger-ui')
    await app.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: CONTENT_SECURITY_POLICY,
      theme: { title: 'Onetrip API' },
    })

    let document = ''
    app.addHook('onReady', async () => {
      document = JSON.stringify(app.swagger())
    })
    app.get(
      '/openapi.json',
      { schema: { hide: true }, logLevel: 'warn' },
      async (_request, reply) => reply.type('application/json; charset=utf-8').send(document),
    )
  },
  { name: 'openapi' },
)
