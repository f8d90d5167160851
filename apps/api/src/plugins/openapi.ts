import { readFile } from 'node:fs/promises'
import swagger from '@fastify/swagger'
import { cookieName } from '@onetrip/session-store/fastify'
import fp from 'fastify-plugin'
import type { OpenAPIV3_1 } from 'openapi-types'
import { errorResponses, withErrors } from '../openapi-errors.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** Statuses that this route alone answers with; those that every such route has come by themselves. */
    'x-errors'?: readonly number[]
  }
}

const DESCRIPTION = `Logins, recent sessions and viewed items in Redis, with one round trip for a view.

Every error has the same shape, and its \`code\` is one of a fixed list. This also holds for requests that reach
no route: 400 (not HTTP, or a malformed path), 404, 405, 408 and 431.`

// Not the plugin's own, which has upgrade-insecure-requests: over plain HTTP the page would stay empty.
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

/** Serves `/openapi.json`, made from the routes' schemas, and a page to read it and try it at `/docs`. */
export const openapiPlugin = fp<{ secureCookie: boolean }>(
  async (app, { secureCookie }) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: { title: 'Onetrip', version: '0.1.0', description: DESCRIPTION },
        servers: [{ url: '/' }],
        tags: [
          { name: 'sessions', description: 'Who is logged in, and where' },
          { name: 'views', description: 'What is viewed' },
          { name: 'data', description: 'What the application keeps with a session' },
          { name: 'demo', description: 'The demo page and what only it needs' },
          {
            name: 'shop',
            description:
              'Applications on the same pattern: a flash sale, a feed, unique viewers, risk features',
          },
          { name: 'operations', description: 'For what watches the service' },
        ],
        components: {
          securitySchemes: {
            bearer: { type: 'http', scheme: 'bearer', description: 'The token of POST /login' },
            cookie: { type: 'apiKey', in: 'cookie', name: cookieName({ secure: secureCookie }) },
          },
          ...errorResponses,
        } as OpenAPIV3_1.ComponentsObject,
      },
      convertConstToEnum: false,
      transformObject: (document) =>
        withErrors((document as { openapiObject: OpenAPIV3_1.Document }).openapiObject),
    })

    // Loaded only where it is served.
    const { default: swaggerUi } = await import('@fastify/swagger-ui')
    const icon = await readFile(new URL('../../page/favicon.svg', import.meta.url))
    const type = 'image/svg+xml'
    await app.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: CONTENT_SECURITY_POLICY,
      logo: { type, content: icon, href: '/', target: '_self' },
      theme: {
        title: 'Onetrip API',
        favicon: [{ filename: 'favicon.svg', rel: 'icon', type, sizes: 'any', content: icon }],
      },
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
