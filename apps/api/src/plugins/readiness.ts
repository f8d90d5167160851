import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    readiness: Readiness
  }
}

interface Readiness {
  readonly stopping: boolean
  /**
   * From now on `/readyz` says no, so that load balancers send nothing new here. Whatever comes is
   * still answered, and is the last on its connection: closing is another step, later, and would cut those
   * whose clients just send.
   */
  stop(): void
}

/** Knows whether the process is about to stop. A server that closes is stopping, too. */
export const readinessPlugin = fp(
  async (app) => {
    let stopping = false
    const stop = () => {
      stopping = true
      app.server.maxRequestsPerSocket = 1 // counted from now on
    }
    app.decorate('readiness', {
      get stopping() {
        return stopping
      },
      stop,
    })
    app.addHook('preClose', async () => stop())
  },
  { name: 'readiness' },
)
