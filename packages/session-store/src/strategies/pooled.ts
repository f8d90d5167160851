import { type Client, isCluster } from '../client.ts'
import { readOutcomes, updateError } from '../outcomes.ts'
import { Pool } from '../pool.ts'
import { scanNodes } from '../scan.ts'
import {
  type Send,
  sendOneByOne,
  sendPipeline,
  sendScript,
  sendTransaction,
  withDeadline,
} from '../send.ts'
import type { Strategy, StrategyName, StrategyOptions } from '../strategy.ts'
import type { Update } from '../updates.ts'

const DEADLINES_UNTIL_STALLED = 5

export function openPool(options: StrategyOptions): { pool: Pool; deadlineMs: number } {
  const { url, client, poolSize = 1, deadlineMs = 2_000, maxInFlight = 1_000 } = options
  const pool = new Pool({
    url,
    tls: options.tls,
    client,
    size: poolSize,
    maxInFlight,
    connectTimeoutMs: deadlineMs,
    stalledAfterMs: DEADLINES_UNTIL_STALLED * deadlineMs,
  })
  return { pool, deadlineMs }
}

/** Scans through a connection of the pool. */
export function scanWith({ pool, deadlineMs }: ReturnType<typeof openPool>): Strategy['scan'] {
  return async (request, from) => {
    try {
      const step = pool.use((client) => scanNodes(client, request, from))
      return await withDeadline(step, deadlineMs, true)
    } catch (error) {
      throw updateError(error, true)
    }
  }
}

function pooled(name: StrategyName, send: Send, options: StrategyOptions): Strategy {
  const { pool, deadlineMs } = openPool(options)

  async function run<Result>(update: Update<Result>): Promise<Result> {
    try {
      const sent = pool.use((client) => send(client, update.commands))
      return readOutcomes(update, await withDeadline(sent, deadlineMs, update.readOnly))
    } catch (error) {
      throw updateError(error, update.readOnly)
    }
  }

  return {
    name,
    run,
    scan: scanWith({ pool, deadlineMs }),
    get pool() {
      return pool.state
    },
    ready: (timeoutMs) => pool.ready(timeoutMs),
    close: () => pool.close(deadlineMs),
  }
}

/** @throws TypeError for a cluster, where the keys of an update are on several nodes. */
function onOneServer(name: StrategyName, { client }: StrategyOptions): void {
  if (client && [client as Client | readonly Client[]].flat().some(isCluster)) {
    throw new TypeError(`the strategy ${name} needs all keys on one server; use batch or pipeline`)
  }
}

/** Shared connections, one pipeline for each update: one round trip. The documents' answer. */
export const pipeline = (options: StrategyOptions): Strategy =>
  pooled('pipeline', sendPipeline, options)

/** Shared connections, one round trip for each command. */
export const sequential = (options: StrategyOptions): Strategy =>
  pooled('sequential', sendOneByOne, options)

/** Shared connections, MULTI and EXEC around each update: one round trip, all of it or nothing. */
export function transaction(options: StrategyOptions): Strategy {
  onOneServer('transaction', options)
  return pooled('transaction', sendTransaction, options)
}

/** Shared connections, each update as arguments of one server-side script. For comparison only. */
export function script(options: StrategyOptions): Strategy {
  onOneServer('script', options)
  return pooled('script', sendScript, options)
}
