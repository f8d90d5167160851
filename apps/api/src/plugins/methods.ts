import type { HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods of each path that was registered since and is not hidden from the documentation. */
    methodsOf: ReadonlyMap<string, ReadonlySet<string>>
  }
}

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Remembers which methods each path has. To be registered before the routes. */
export const methodsPlugin = fp(
  async (app) => {
    const methodsOf = new Map<string, Set<string>>()
    app.decorate('methodsOf', methodsOf)
    app.addHook('onRoute', ({ url, method, schema }) => {
      if (schema?.hide) return
      const methods = methodsOf.get(url) ?? new Set()
      for (const one of [method].flat()) methods.add(one)
      methodsOf.set(url, methods)
    })
  },
  { name: 'methods' },
)

/**
 * Answers 405, and what there is, where a path exists but not with this method. These are routes, so that
 * no other request pays for them. To be registered after all others.
 */
export const otherMethodsPlugin = fp(
  async (app) => {
    for (const [url, there] of [...app.methodsOf]) {
      const allow = [...there].join(', ')
      app.route({
        url,
        method: METHODS.filter((method) => !there.has(method)),
        schema: { hide: true },
        onRequest: (_request, reply, done) => {
          reply.header('allow', allow)
          done(new ApiError('API_METHOD_NOT_ALLOWED'))
        },
        handler: () => undefined,
      })
    }
  },
  { name: 'other-methods', dependencies: ['methods'] },
)
