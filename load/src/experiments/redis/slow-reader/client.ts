import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { SessionStore, StoreError } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Redis } from 'ioredis'
import { encode, rawSocket } from '../../../drivers/redis/raw-connection.ts'

// The client in its own thread, so that it does not block the thread that measures the server's memory. It fills the
// Redis on `workerData.port`, posts `ready`, and then answers each `Work` with a `Reading`.

const { port } = workerData as { port: number }

export interface Work {
  /** `nothing` and `all`: the replies that a plain socket reads. `store`: reads through the store. */
  reads: keyof typeof readers
  /** The total size of the requested replies. */
  megabytes: number
  /** The number of commands, or calls of the store, in flight. */
  atOnce: number
  /** The time in which a client that reads nothing sends its commands. It then stays connected for half that time. */
  sendMs: number
}

export type Reading = {
  readMegabytes: number
  /** Calls of the store that were refused because too many were in flight. */
  refusedCalls: number
}

const MEGABYTE = 2 ** 20

const ELEMENTS = 10
const element = 'x'.repeat(1_000)
const names = Array.from({ length: ELEMENTS }, (_, index) => `slow-reader:${index}`)
const list = names.map(() => element)
const hash = names.flatMap((name) => [name, element])

/** Writes the keys for the reads. */
async function fill(): Promise<void> {
  const redis = new Redis(port)
  await redis.set('slow-reader:string', element.repeat(ELEMENTS))
  await redis.mset(...hash)
  await redis.hset('slow-reader:hash', ...hash)
  await redis.del('slow-reader:list')
  await redis.rpush('slow-reader:list', ...list)
  redis.disconnect()
}

/** The kinds of reads in the articles. Each reply has about 10 kB. */
const reads = [
  ['GET', 'slow-reader:string'],
  ['MGET', ...names],
  ['HGETALL', 'slow-reader:hash'],
  ['LRANGE', 'slow-reader:list', 0, -1],
]
const request = Buffer.concat(reads.map(encode))

const string = encode([element.repeat(ELEMENTS)]).subarray('*1\r\n'.length)

/** The size of the replies to these reads. An array is encoded like a command. */
const GROUP_REPLY_BYTES = string.length + 2 * encode(list).length + encode(hash).length

const groupsOf = (megabytes: number) => Math.round((megabytes * MEGABYTE) / GROUP_REPLY_BYTES)

const repeat = (buffer: Buffer, times: number) =>
  Buffer.concat(new Array<Buffer>(times).fill(buffer))

/** The client that the articles warn of: it sends reads at a constant rate and does not read the replies. */
async function readNothing({ megabytes, sendMs }: Work): Promise<Reading> {
  const groups = groupsOf(megabytes)
  const socket = await rawSocket({ port }, { reading: false })
  let open = true
  socket.on('error', () => {
    open = false // some settings make Redis close the connection
  })
  const start = performance.now()
  for (let sent = 0; open && sent < groups; ) {
    await delay(10)
    const due = Math.ceil((groups * (performance.now() - start)) / sendMs)
    const more = Math.min(due, groups) - sent
    socket.write(repeat(request, more))
    sent += more
  }
  await delay(start + 1.5 * sendMs - performance.now())
  socket.destroy()
  return { readMegabytes: 0, refusedCalls: 0 }
}

/** Sends the same reads and reads every reply immediately. */
async function readAll({ megabytes, atOnce }: Work): Promise<Reading> {
  const groups = groupsOf(megabytes)
  const socket = await rawSocket({ port })
  let [sent, bytesRead] = [0, 0]
  const send = () => {
    const more = Math.min(atOnce / reads.length, groups - sent)
    socket.write(repeat(request, more))
    sent += more
  }
  send()
  for await (const chunk of socket) {
    bytesRead += chunk.length
    if (bytesRead < sent * GROUP_REPLY_BYTES) continue
    if (sent === groups) return { readMegabytes: bytesRead / MEGABYTE, refusedCalls: 0 }
    send()
  }
  throw new Error('Redis closed the connection')
}

/** The approximate size of the reply to `viewedItems`, for 25 items with long names. */
const CALL_REPLY_BYTES = 4_000

const STALL_MS = 300
const memory = new Int32Array(new SharedArrayBuffer(4))

/** Reads about as many bytes through the store. Its thread is blocked once, after a third of the calls. */
async function readThroughStore({ megabytes, atOnce }: Work): Promise<Reading> {
  const calls = Math.ceil((megabytes * MEGABYTE) / CALL_REPLY_BYTES)
  const url = `redis://127.0.0.1:${port}`
  const store = new SessionStore({
    redis: url,
    tokens: { secrets: [newSecret()] },
    janitor: 'elsewhere',
  })
  await store.ready()
  const { token } = await store.login('slow-reader')
  for (let item = 0; item < 25; item++) await store.recordView(token, `${item}`.padEnd(128, 'x'))
  let [made, refusedCalls] = [0, 0]
  const callOn = async () => {
    while (made < calls) {
      made++
      // Block the thread like a long computation.
      if (made === Math.ceil(calls / 3)) setImmediate(() => Atomics.wait(memory, 0, 0, STALL_MS))
      try {
        await store.viewedItems(token)
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== 'ONETRIP_OVERLOADED') throw error
        refusedCalls++
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, calls) }, callOn))
  await store.close()
  return { readMegabytes: ((calls - refusedCalls) * CALL_REPLY_BYTES) / MEGABYTE, refusedCalls }
}

const readers = { nothing: readNothing, all: readAll, store: readThroughStore }

parentPort?.on('message', async (work: Work) => {
  parentPort?.postMessage(await readers[work.reads](work))
})
await fill()
parentPort?.postMessage('ready')
