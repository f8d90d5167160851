import swagger from '@fastify/swagger'
import { cookieName, errorBody } from '@onetrip/session-store/fastify'
import fp from 'fastify-plugin'
import type { OpenAPIV3_1 } from 'openapi-types'
import { Type } from 'typebox'
import manifest from '../../package.json' with { type: 'json' }
import { ApiError, type ErrorKind, errorTable } from '../errors.ts'

const DESCRIPTION = `Login sessions, recent sessions and viewed items in Redis. Recording a view takes one round trip.

All errors have the same shape, and a \`code\` from a fixed list. This includes requests that match no route.`

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
        info: {
          title: 'Onetrip',
          version: manifest.version,
          description: DESCRIPTION,
          license: { name: 'MIT', identifier: 'MIT' },
        },
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
          responses: { Error: errorResponse(errors) },
        } as OpenAPIV3_1.ComponentsObject,
      },
      convertConstToEnum: false,
      transformObject: (document) =>
        completed((document as { openapiObject: OpenAPIV3_1.Document }).openapiObject),
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

/** The response of all errors: those of the API, and the application's own. */
function errorResponse(ofApplication: readonly ErrorKind[]): OpenAPIV3_1.ResponseObject {
  const ofApi = Object.entries(errorTable).map(([code, properties]) => ({ code, ...properties }))
  const kinds = [...ofApi, ...ofApplication].toSorted((a, b) => a.statusCode - b.statusCode)
  return {
    description: kinds
      .map(({ statusCode, code, meaning }) => `- ${statusCode} \`${code}\`: ${meaning}`)
      .join('\n'),
    content: { 'application/json': { schema: errorSchema(kinds.map(({ code }) => code)) } },
  }
}

function errorSchema(codes: readonly string[]) {
  return Type.Object(
    {
      statusCode: Type.Integer(),
      code: Type.String({ enum: codes }),
      error: Type.String({ description: 'Name of the status' }),
      message: Type.String(),
      mayHaveWritten: Type.Optional(
        Type.Boolean({
          description: 'With 5xx: whether Redis may have executed a write of this request',
        }),
      ),
      retrySafe: Type.Optional(
        Type.Boolean({
          description:
            'With 5xx: whether the request can safely be retried: nothing is counted twice',
        }),
      ),
    },
    { additionalProperties: false, examples: [errorBody(new ApiError('API_NOT_FOUND'))] },
  )
}

/** Adds the error response to every operation of the document, and marks those that need no token. */
function completed(document: OpenAPIV3_1.Document): OpenAPIV3_1.Document {
  for (const path of Object.values(document.paths ?? {})) {
    for (const operation of Object.values(path ?? {}) as OpenAPIV3_1.OperationObject[]) {
      const error = { $ref: '#/components/responses/Error' }
      operation.responses = { ...operation.responses, '4XX': error, default: error }
      operation.security ??= []
    }
  }
  return document
}
