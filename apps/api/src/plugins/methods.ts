import type { HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registered paths and their methods. */
    paths: ReadonlyMap<string, Path>
  }
}

interface Path {
  readonly methods: Set<string>
  /** Not in the documentation. */
  readonly hidden: boolean
}

/** Records the methods of each path. Register it before the routes. */
export const methodsPlugin = fp(
  async (app) => {
    const paths = new Map<string, Path>()
    app.decorate('paths', paths)
    app.addHook('onRoute', ({ url, method, schema }) => {
      const hidden = schema?.hide === true
      const path = paths.get(url) ?? { methods: new Set(), hidden }
      if (hidden !== path.hidden) return // a route of otherMethodsPlugin
      for (const one of [method].flat()) path.methods.add(one)
      paths.set(url, path)
    })
  },
  { name: 'methods' },
)

/**
 * Answers 405 with the allowed methods if a path does not have the method. It adds routes rather than a hook,
 * so other requests take no extra time. Register it last.
 */
export const otherMethodsPlugin = fp(
  async (app) => {
    for (const [url, { methods, hidden }] of [...app.paths]) {
      if (hidden) continue
      const allow = [...methods].join(', ')
      app.route({
        url,
        method: app.supportedMethods.filter((method) => !methods.has(method)) as HTTPMethods[],
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
