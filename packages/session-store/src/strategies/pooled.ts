import type { Redis } from 'ioredis'
import { Pool } from '../pool.ts'
import { sendOneByOne, sendPipeline, withDeadline } from '../send.ts'
import type { Strategy, StrategyName, StrategyOptions } from '../strategy.ts'
import type { Update } from '../updates.ts'

type Send = <Result>(redis: Redis, update: Update<Result>) => Promise<Result>

function pooled(name: StrategyName, send: Send, options: StrategyOptions): Strategy {
  const { url, poolSize = 1, deadlineMs = 2_000, maxInFlight = 1_000 } = options
  const pool = new Pool({ url, size: poolSize, maxInFlight, connectTimeoutMs: deadlineMs })
  return {
    name,
    run: (update) =>
      withDeadline(
        pool.use((redis) => send(redis, update)),
        deadlineMs,
        update.readOnly,
      ),
    ready: (timeoutMs) => pool.ready(timeoutMs),
    close: () => pool.close(deadlineMs),
  }
}

/** Shared connections, one pipeline for each update: one round trip. The documents' answer. */
export const pipeline = (options: StrategyOptions): Strategy =>
  pooled('pipeline', sendPipeline, options)

/** Shared connections, one round trip for each command. */
export const sequential = (options: StrategyOptions): Strategy =>
  pooled('sequential', sendOneByOne, options)
