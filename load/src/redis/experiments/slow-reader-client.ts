import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { RedisOptions } from '@onetrip/stack/address.ts'
import type { Redis } from 'ioredis'
import { encode, rawSocket } from '../../drivers/redis/raw-connection.ts'

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
export const GROUP_COMMANDS = reads.length

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
  /** Bytes of replies that were taken, about. */
  bytesRead: number
  /** Calls of the store that were refused because too many were in flight. */
  refused: number
}

export interface ReadingOptions {
  address: RedisOptions
  /** Groups of commands to send in all. */
  groups: number
  signal: AbortSignal
}

const TICK_MS = 10

/**
 * Sends reads at an even pace and reads no reply, then holds the connection. This is the client that
 * the documents warn of.
 *
 * @param options.sendMs how long the sending takes.
 * @param options.holdMs how long the connection stays after that.
 */
export async function readNothing(
  options: ReadingOptions & { sendMs: number; holdMs: number },
): Promise<Reading> {
  const { address, groups, sendMs, holdMs, signal } = options
  const socket = await rawSocket(address, { reading: false })
  let open = true
  socket.on('error', () => {
    open = false // the server has closed the connection; that is what some of its settings are for
  })
  let sent = 0
  const start = performance.now()
  try {
    while (open && sent < groups) {
      await delay(TICK_MS, undefined, { signal })
      const due = Math.ceil((groups * (performance.now() - start)) / sendMs)
      const more = Math.min(due, groups) - sent
      socket.write(Buffer.concat(Array.from({ length: more }, () => request)))
      sent += more
    }
    await delay(Math.max(0, start + sendMs + holdMs - performance.now()), undefined, { signal })
  } finally {
    socket.destroy()
  }
  return { commands: sent * GROUP_COMMANDS, bytesRead: 0, refused: 0 }
}

/**
 * Sends the same reads and takes every reply as soon as it comes.
 *
 * @param options.groupsPerPipeline how many groups are sent before their replies are waited for.
 * @throws Error when the server closes the connection.
 */
export async function readAll(
  options: ReadingOptions & { groupsPerPipeline: number },
): Promise<Reading> {
  const { address, groups, groupsPerPipeline, signal } = options
  const socket = await rawSocket(address)
  const replies = byteCounter(socket)
  const onAbort = () => void socket.destroy()
  signal.addEventListener('abort', onAbort)
  try {
    for (let sent = 0; sent < groups; ) {
      const more = Math.min(groupsPerPipeline, groups - sent)
      socket.write(Buffer.concat(Array.from({ length: more }, () => request)))
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
