import type { Registry } from 'prom-client'
import { NUMBER_VARIABLE, type ToPrimary, type ToWorker } from './messages.ts'

/** A worker's line to its primary. */
export interface WorkerLine {
  /** Of all workers one is the first, for what only one has to do. */
  readonly isFirst: boolean
  /** Says that all but the port is ready, and resolves when it is time to listen. */
  mayListen(): Promise<void>
  /** Says why this worker cannot serve. Resolves when that is said. */
  failed(reason: string): Promise<void>
  /**
   * Has the metrics of this process merged with those of all others.
   *
   * @returns What gives those of all, in Prometheus's text format.
   */
  mergeMetrics(own: Registry): () => Promise<string>
}

/** To be called once, in a worker. */
export function lineToPrimary(): WorkerLine {
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
    else collect().catch(() => {}) // a primary that is gone needs no answer
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
