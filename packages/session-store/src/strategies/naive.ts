import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { shortConnection } from '../client.ts'
import { publishConnection, publishError } from '../diagnostics.ts'
import type { StoreError } from '../errors.ts'
import { notSent, overloaded, readOutcomes } from '../outcomes.ts'
import { scanOne } from '../scan.ts'
import { sendOneByOne, withDeadline } from '../send.ts'
import type { Strategy, StrategyOptions } from '../strategy.ts'
import type { Update } from '../updates.ts'

const PING: Update<void> = { commands: [['PING']], readOnly: true, read: () => undefined }
const RETRY_MS = 100

/**
 * What the documents warn of: every update opens a connection, sends one command per round trip and
 * closes it, as an application would write it: ioredis's defaults (HELLO, client info, INFO as a ready
 * check) and its graceful end (`quit`), but no retries.
 */
export function naive(options: StrategyOptions): Strategy {
  const { url, deadlineMs = 2_000, maxInFlight = 1_000 } = options
  if (url === undefined) throw new TypeError('the strategy naive opens connections: it needs a URL')
  const address = url
  const open = new Set<Promise<unknown>>()
  let closed = false

  async function onShortConnection<Result>(update: Update<Result>): Promise<Result> {
    const redis = shortConnection(address, deadlineMs)
    redis.on('connect', publishConnection)
    const timer = setTimeout(() => destroy(redis), deadlineMs)
    try {
      await connect(redis)
      const result = readOutcomes(update, await sendOneByOne(redis, update.commands))
      await redis.quit().catch(() => undefined) // the result is there, however the connection ends
      return result
    } finally {
      clearTimeout(timer)
      destroy(redis)
    }
  }

  async function run<Result>(update: Update<Result>): Promise<Result> {
    try {
      return await begin(update)
    } catch (error) {
      publishError((error as StoreError).code)
      throw error
    }
  }

  function begin<Result>(update: Update<Result>): Promise<Result> {
    if (closed) return Promise.reject(notSent('the store is closed'))
    if (open.size >= maxInFlight) return Promise.reject(overloaded(open.size))
    const work = onShortConnection(update)
    const settled: Promise<unknown> = work.then(
      () => open.delete(settled),
      () => open.delete(settled),
    )
    open.add(settled)
    // A little longer than the connection's own deadline, which tells better what happened.
    return withDeadline(work, deadlineMs + RETRY_MS, update.readOnly)
  }

  return {
    name: 'naive',
    pool: undefined,
    run,
    scan: (request, from) => run(scanOne(request, from)),
    async ready(timeoutMs) {
      const end = Date.now() + timeoutMs
      for (;;) {
        try {
          return await run(PING)
        } catch (error) {
          if (Date.now() >= end) throw error
          await delay(RETRY_MS)
        }
      }
    },
    async close() {
      closed = true
      await Promise.all(open)
    },
  }
}

async function connect(redis: Redis): Promise<void> {
  let reason: unknown
  redis.on('error', (error) => {
    reason = error
  })
  try {
    await redis.connect()
  } catch (error) {
    throw notSent('no connection could be opened', reason ?? error)
  }
}

/** Closes what is still open. After an attempt that failed, `disconnect()` would keep a timer of 2 s. */
function destroy(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect()
}
