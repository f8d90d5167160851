import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'
import { createSessionStore, documentKeys, type Keys } from '@onetrip/session-store'
import { type RedisOptions, redisAddress } from '@onetrip/stack/address.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Redis } from 'ioredis'
import { encode, exchanger, greeting, rawSocket } from '../../drivers/redis/raw-connection.ts'

/** Sends one command to Redis and waits for its reply, again and again. */
export interface Caller {
  call(): Promise<unknown>
  close(): Promise<void> | void
}

export interface Loop {
  calls: number
  seconds: number
  /** Of a call, in milliseconds. */
  p50: number
  p99: number
  /** What ended it early; nothing when it ran as long as it should. */
  error: Error | null
}

/** A key that does not exist, so that there is nothing to write or remove. */
export const missingKey = 'onetrip-load:none'

const get = encode(['GET', missingKey])
const nil = Buffer.from('$-1\r\n')

const CONNECT_MS = 1_500
const REPLY_MS = 3_000

/** The only key that the store is asked for here. */
const missingKeys: Keys = { ...documentKeys, allPopular: () => [missingKey] }

export type CallerName = 'raw' | 'ioredis' | 'reconnect' | 'reconnect-ioredis' | 'store'

/** How the callers are made. All read a key that does not exist, by one command for each call. */
export const callers: Record<CallerName, (url: string) => Promise<Caller>> = {
  /** A plain socket that parses nothing. */
  async raw(url) {
    const { options } = redisAddress(url)
    const hello = greeting(options)
    const socket = await rawSocket(options)
    const exchange = exchanger(socket)
    await exchange(hello.commands, hello.replies)
    return {
      async call() {
        await exchange(get, nil)
      },
      close: () => void socket.destroy(),
    }
  },

  async ioredis(url) {
    const redis = await connected(url)
    return { call: () => redis.get(missingKey), close: () => redis.disconnect() }
  },

  /** A plain socket for each command: what opening and closing costs, without any client's own habits. */
  async reconnect(url) {
    const { options } = redisAddress(url)
    const hello = greeting(options)
    return {
      async call() {
        const socket = await rawSocket(options)
        try {
          const exchange = exchanger(socket)
          await exchange(hello.commands, hello.replies)
          await exchange(get, nil)
        } finally {
          socket.destroy()
        }
      },
      close: () => undefined,
    }
  },

  /** An ioredis client for each command, with its defaults (HELLO, CLIENT SETINFO twice, INFO). */
  async 'reconnect-ioredis'(url) {
    return {
      async call() {
        const redis = await connected(url)
        await redis.get(missingKey)
        redis.disconnect()
      },
      close: () => undefined,
    }
  },

  /** The store: its shortest reading call, which is one command as well. */
  async store(url) {
    const store = createSessionStore({
      url,
      tokens: { secrets: [newSecret()] },
      keys: missingKeys,
      janitor: false,
    })
    try {
      await store.ready(CONNECT_MS)
    } catch (error) {
      await store.close()
      throw (error as Error).cause ?? error // the system's own words
    }
    return { call: () => store.popularItems(1), close: () => store.close() }
  },
}

async function connected(url: string): Promise<Redis> {
  const settings: RedisOptions = {
    ...redisAddress(url).options,
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    retryStrategy: () => null,
  }
  const redis = new Redis(settings)
  let reason: Error | undefined
  redis.on('error', (error: Error) => {
    reason = error // which connect() does not tell
  })
  try {
    await redis.connect()
  } catch (error) {
    throw reason ?? error
  }
  return redis
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
 * @throws the reason of `signal`, at once.
 */
export async function loop(caller: Caller, options: LoopOptions): Promise<Loop> {
  const { width = 1, seconds, maxCalls, signal } = options
  const latency = createHistogram()
  let begun = 0
  let answered = 0
  let error: Error | null = null
  const start = performance.now()
  const end = start + seconds * 1000
  const callOn = async () => {
    for (let now = start; now < end && begun < maxCalls && !error && !signal.aborted; ) {
      begun++
      try {
        await caller.call()
      } catch (failure) {
        error ??= failure instanceof Error ? failure : new Error(String(failure))
        return
      }
      answered++
      const then = now
      now = performance.now()
      latency.record(Math.max(1, Math.round((now - then) * 1e6)))
    }
  }
  // One timer for all calls: one for each would be a part of what is measured.
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), seconds * 1_000 + REPLY_MS)
  const givenUp = once(AbortSignal.any([signal, late.signal]), 'abort')
  try {
    await Promise.race([givenUp, Promise.all(Array.from({ length: width }, callOn))])
  } finally {
    clearTimeout(timer)
  }
  signal.throwIfAborted()
  if (late.signal.aborted) error ??= new Error('the server does not answer any more')
  return {
    calls: answered,
    seconds: (performance.now() - start) / 1000,
    p50: latency.percentile(50) / 1e6,
    p99: latency.percentile(99) / 1e6,
    error,
  }
}
