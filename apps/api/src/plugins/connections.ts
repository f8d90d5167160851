import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Rejects a pipelined request behind an unsafe one that is not yet answered. Node would handle both at the same time:
 * `GET /me` could still succeed behind `POST /logout`.
 */
export const connectionsPlugin = fp(
  async (app) => {
    /** The unanswered response to an unsafe request. */
    const unsafe = new WeakMap<Socket, ServerResponse>()
    const pipelined = new ApiError('API_PIPELINED')

    app.addHook('onRequest', ({ method, raw: { socket } }, { raw: response }, done) => {
      if (unsafe.has(socket)) return done(pipelined)
      if (!SAFE_METHODS.has(method)) unsafe.set(socket, response)
      done()
    })
    app.addHook('onResponse', ({ raw: { socket } }, { raw: response }, done) => {
      if (unsafe.get(socket) === response) unsafe.delete(socket)
      done()
    })
  },
  { name: 'connections', dependencies: ['errors'] },
)
