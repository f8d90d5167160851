import type { Registry } from 'prom-client'
import { NUMBER_VARIABLE, type ToPrimary, type ToWorker } from './messages.ts'

/** IPC from a worker to the primary. */
export interface PrimaryChannel {
  /** True in one worker, which does the tasks that only one process has to do. */
  readonly isFirst: boolean
  /** Reports that everything but the port is ready. Resolves when the worker may listen. */
  mayListen(): Promise<void>
  /** Reports why this worker cannot serve. Resolves when the message is sent. */
  failed(reason: string): Promise<void>
  /**
   * Includes the metrics of this process in the merged metrics.
   *
   * @returns Function that returns the merged metrics of all processes in Prometheus's text format.
   */
  mergeMetrics(own: Registry): () => Promise<string>
}

/** Call it once per worker. */
export function primaryChannel(): PrimaryChannel {
  const listen = Promise.withResolvers<void>()
  const requests = new Map<number, (text: string | null) => void>()
  let lastRequest = 0
  let registry: Registry | undefined

  const send = (message: ToPrimary) =>
    new Promise<void>((resolve, reject) => {
      process.send?.(message, undefined, {}, (error) => (error ? reject(error) : resolve()))
    })

  const collect = async () => {
    await send({ kind: 'collected', metrics: (await registry?.getMetricsAsJSON()) ?? [] })
  }

  process.on('message', (message: ToWorker) => {
    if (message.kind === 'listen') listen.resolve()
    else if (message.kind === 'merged') requests.get(message.request)?.(message.text)
    else collect().catch(() => {}) // the primary has exited
  })

  return {
    isFirst: process.env[NUMBER_VARIABLE] === '1',
    async mayListen() {
      await send({ kind: 'ready' })
      await listen.promise
    },
    failed: (reason) => send({ kind: 'failed', reason }),
    mergeMetrics(own) {
      registry = own
      return async () => {
        const request = ++lastRequest
        const { promise, resolve } = Promise.withResolvers<string | null>()
        requests.set(request, resolve)
        await send({ kind: 'merge', request })
        const text = await promise.finally(() => requests.delete(request))
        if (text === null) throw new Error('the metrics of the workers cannot be merged')
        return text
      }
    },
  }
}
