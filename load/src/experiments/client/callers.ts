import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'
import { createSessionStore, documentKeys, type Keys } from '@onetrip/session-store'
import { type RedisOptions, redisAddress } from '@onetrip/stack/address.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { connectOnce } from '../../drivers/redis/connect.ts'
import { encode, exchanger, greeting, rawSocket } from '../../drivers/redis/raw-connection.ts'

/** Sends one command to Redis and waits for its reply, again and again. */
export interface Caller {
  call(): Promise<unknown>
  close?(): Promise<void> | void
}

/** A key that does not exist, so that there is nothing to write or remove. */
export const missingKey = 'onetrip-load:none'

const CONNECT_MS = 1_500
const REPLY_MS = 3_000

/** The only key that the store is asked for here. */
const missingKeys: Keys = { ...documentKeys, allPopular: () => [missingKey] }

export type CallerName = 'raw' | 'ioredis' | 'reconnect' | 'reconnect-ioredis' | 'store'

/** How the callers are made. All read a key that does not exist, by one command for each call. */
export const callers: Record<CallerName, (url: string) => Promise<Caller>> = {
  async raw(url) {
    return await plainSocket(redisAddress(url).options)
  },

  async ioredis(url) {
    const redis = await connectOnce(optionsOf(url))
    return { call: () => redis.get(missingKey), close: () => redis.disconnect() }
  },

  /** What opening and closing costs, without any client's own habits. */
  async reconnect(url) {
    const { options } = redisAddress(url)
    return {
      async call() {
        const socket = await plainSocket(options)
        await socket.call().finally(socket.close)
      },
    }
  },

  /** With ioredis's defaults: HELLO, CLIENT SETINFO twice, INFO. */
  async 'reconnect-ioredis'(url) {
    const options = optionsOf(url)
    return {
      async call() {
        const redis = await connectOnce(options)
        await redis.get(missingKey)
        redis.disconnect()
      },
    }
  },

  /** The store: its shortest reading call, which is one command as well. */
  async store(url) {
    const tokens = { secrets: [newSecret()] }
    const store = createSessionStore({ url, tokens, keys: missingKeys, janitor: false })
    try {
      await store.ready(CONNECT_MS)
    } catch (error) {
      await store.close()
      throw (error as Error).cause ?? error // the system's own words
    }
    return { call: () => store.popularItems(1), close: () => store.close() }
  },
}

const optionsOf = (url: string) => ({ ...redisAddress(url).options, connectTimeout: CONNECT_MS })

const get = encode(['GET', missingKey])
const nil = Buffer.from('$-1\r\n')

/** A socket that is logged in; it parses nothing. */
async function plainSocket(options: RedisOptions) {
  const { commands, replies } = greeting(options)
  const socket = await rawSocket(options)
  const exchange = exchanger(socket)
  const close = () => void socket.destroy()
  await exchange(commands, replies).catch((error) => {
    close()
    throw error
  })
  return { call: () => exchange(get, nil), close }
}

export interface LoopOptions {
  /** How many calls wait for their replies at the same time. Default 1. */
  width?: number
  seconds: number
  /** No call begins after this number of them. */
  maxCalls: number
  signal: AbortSignal
}

/**
 * Calls for some time, each caller again when it has its answer. The first error ends the loop, and a
 * server that does not answer within 3 s of the end is one.
 *
 * @returns p50 and p99 in microseconds; `error` is null when it ran as long as it should.
 * @throws the reason of `signal`, at once.
 */
export async function loop(caller: Caller, options: LoopOptions) {
  const { width = 1, seconds, maxCalls, signal } = options
  const latency = createHistogram()
  let begun = 0
  let error: Error | null = null
  const start = performance.now()
  const end = start + seconds * 1000
  const callOn = async () => {
    for (let now = start; now < end && begun < maxCalls && !error && !signal.aborted; ) {
      begun++
      try {
        await caller.call()
      } catch (failure) {
        error ??= failure as Error
        return
      }
      const then = now
      now = performance.now()
      latency.record(Math.max(1, Math.round((now - then) * 1e6)))
    }
  }
  // One timer for all calls: one for each would be a part of what is measured.
  const late = AbortSignal.timeout(seconds * 1_000 + REPLY_MS)
  const givenUp = once(AbortSignal.any([signal, late]), 'abort')
  await Promise.race([givenUp, Promise.all(Array.from({ length: width }, callOn))])
  signal.throwIfAborted()
  if (late.aborted) error ??= new Error('the server does not answer any more')
  const calls = latency.count
  if (calls === 0) return { calls, error }
  return {
    calls,
    perSecond: (calls * 1_000) / (performance.now() - start),
    p50: latency.percentile(50) / 1e3,
    p99: latency.percentile(99) / 1e3,
    error,
  }
}
