import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { RedisOptions } from '@onetrip/stack/address.ts'
import type { Redis } from 'ioredis'
import { encode, rawSocket } from '../../drivers/redis/raw-connection.ts'
import type { StoreReading, StoreWork } from './store.ts'

const ELEMENTS = 10
const ELEMENT_BYTES = 1_000
const prefix = 'slow-reader:'
const element = 'x'.repeat(ELEMENT_BYTES)
const numbers = Array.from({ length: ELEMENTS }, (_, index) => String(index))

/** One read of each of the documents' kinds; each is answered with about 10 kB. */
const reads = [
  ['GET', `${prefix}string`],
  ['MGET', ...numbers.map((number) => `${prefix}string:${number}`)],
  ['HGETALL', `${prefix}hash`],
  ['LRANGE', `${prefix}list`, 0, -1],
]

const request = Buffer.concat(reads.map(encode))

const bulk = (bytes: number) => `$${bytes}\r\n`.length + bytes + 2
const array = (length: number) => `*${length}\r\n`.length

/** Commands in a group: one of each kind. */
const GROUP_COMMANDS = reads.length

/** What Redis answers to a group, on the wire. */
export const GROUP_REPLY_BYTES =
  bulk(ELEMENTS * ELEMENT_BYTES) +
  3 * (array(ELEMENTS) + ELEMENTS * bulk(ELEMENT_BYTES)) +
  // The array of HGETALL is twice as long, and has the fields.
  (array(2 * ELEMENTS) -
    array(ELEMENTS) +
    numbers.reduce((sum, { length }) => sum + bulk(length), 0))

/** Writes what the reads read. */
export async function fill(redis: Redis): Promise<void> {
  await redis.set(`${prefix}string`, element.repeat(ELEMENTS))
  await redis.mset(Object.fromEntries(numbers.map((n) => [`${prefix}string:${n}`, element])))
  await redis.hset(`${prefix}hash`, Object.fromEntries(numbers.map((n) => [n, element])))
  await redis.rpush(`${prefix}list`, ...numbers.map(() => element))
}

/** What a run did, and what came of it. */
export interface Reading {
  /** Commands sent. */
  commands: number
  /** Bytes of replies that were read, about. */
  bytesRead: number
  /** Calls of the store that were refused because too many were in flight. */
  refused: number
}

export interface Work {
  url: string
  /** The same. */
  address: RedisOptions
  /** How much Redis is asked for. */
  replyBytes: number
  /** How long a client that reads nothing sends. It stays connected for half as long after that. */
  sendMs: number
  signal: AbortSignal
}

/** Groups of commands with so many bytes of replies. */
const groupsFor = (bytes: number) => Math.max(1, Math.round(bytes / GROUP_REPLY_BYTES))

const requests = (groups: number) => Buffer.concat(Array.from({ length: groups }, () => request))

const TICK_MS = 10

/**
 * Sends reads at an even pace and reads no reply, then stays connected. This is the client that the
 * documents warn of.
 */
export async function readNothing({ address, replyBytes, sendMs, signal }: Work): Promise<Reading> {
  const groups = groupsFor(replyBytes)
  const socket = await rawSocket(address, { reading: false })
  let open = true
  socket.on('error', () => {
    open = false // Redis has closed the connection, as some of its settings demand
  })
  let sent = 0
  const start = performance.now()
  try {
    while (open && sent < groups) {
      await delay(TICK_MS, undefined, { signal })
      const due = Math.ceil((groups * (performance.now() - start)) / sendMs)
      const more = Math.min(due, groups) - sent
      socket.write(requests(more))
      sent += more
    }
    const end = start + 1.5 * sendMs
    await delay(Math.max(0, end - performance.now()), undefined, { signal })
  } finally {
    socket.destroy()
  }
  return { commands: sent * GROUP_COMMANDS, bytesRead: 0, refused: 0 }
}

/**
 * Sends the same reads and reads every reply as soon as it comes.
 *
 * @param pipeline how many commands are sent before their replies are waited for.
 * @throws Error when the server closes the connection.
 */
export async function readAll(work: Work, pipeline: number): Promise<Reading> {
  const { address, replyBytes, signal } = work
  const groups = groupsFor(replyBytes)
  const socket = await rawSocket(address)
  const replies = byteCounter(socket)
  const onAbort = () => void socket.destroy()
  signal.addEventListener('abort', onAbort)
  try {
    for (let sent = 0; sent < groups; ) {
      const more = Math.min(pipeline / GROUP_COMMANDS, groups - sent)
      socket.write(requests(more))
      sent += more
      await replies.reach(sent * GROUP_REPLY_BYTES)
      signal.throwIfAborted()
    }
    return { commands: groups * GROUP_COMMANDS, bytesRead: replies.count(), refused: 0 }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
    socket.destroy()
  }
}

/** A call of `viewedItems` is HGET and ZREVRANGE; 25 views of long names are answered with about this. */
const CALL_COMMANDS = 2
const CALL_REPLY_BYTES = 4_000

/** The thread of a store stops for so long in the middle of its work. */
const STALL_MS = 300

/**
 * Reads about as many bytes through our store, in a thread of its own.
 *
 * @param atATime calls that wait for their answer at the same time.
 */
export async function readThroughStore(work: Work, atATime: number): Promise<Reading> {
  const { url, replyBytes, signal } = work
  const calls = Math.ceil(replyBytes / CALL_REPLY_BYTES)
  const workerData: StoreWork = { url, calls, atATime, stallMs: STALL_MS }
  const worker = new Worker(new URL('./store.ts', import.meta.url), { workerData })
  const { promise, resolve, reject } = Promise.withResolvers<StoreReading>()
  worker.once('message', resolve).once('error', reject)
  worker.once('exit', (code) => reject(new Error(`the store's thread ended: exit code ${code}`)))
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  try {
    const { answered, refused } = await promise
    return { commands: answered * CALL_COMMANDS, bytesRead: answered * CALL_REPLY_BYTES, refused }
  } finally {
    signal.removeEventListener('abort', onAbort)
    await worker.terminate()
  }
}

function byteCounter(socket: Socket): { count(): number; reach(bytes: number): Promise<void> } {
  let received = 0
  let goal = { bytes: 0, reached: Promise.withResolvers<void>() }
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received >= goal.bytes) goal.reached.resolve()
  })
  socket.on('error', (error) => goal.reached.reject(error))
  socket.on('close', () => goal.reached.reject(new Error('Redis closed the connection')))
  return {
    count: () => received,
    reach(bytes) {
      goal = { bytes, reached: Promise.withResolvers() }
      if (received >= bytes) goal.reached.resolve()
      return goal.reached.promise
    },
  }
}
