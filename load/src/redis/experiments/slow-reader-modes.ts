import { Worker } from 'node:worker_threads'
import { redisAddress } from '@onetrip/stack/address.ts'
import {
  GROUP_COMMANDS,
  GROUP_REPLY_BYTES,
  type Reading,
  readAll,
  readNothing,
} from './slow-reader-client.ts'
import type { StoreReading, StoreWork } from './slow-reader-store.ts'

export type ModeId =
  | 'unlimited'
  | 'output-limit'
  | 'client-memory'
  | 'maxmemory'
  | 'one-pipeline'
  | 'pipelines'
  | 'store'
  | 'store-at-once'

/** How replies are read, and what the server is told to do about clients that do not. */
export interface Mode {
  id: ModeId
  name: string
  /** Settings that differ from `UNLIMITED`. */
  settings: Record<string, string>
  run(work: Work): Promise<Reading>
}

interface Work {
  url: string
  /** How much Redis is asked for. */
  replyBytes: number
  /** How long a client that reads nothing sends, and then holds its connection. */
  sendMs: number
  holdMs: number
  signal: AbortSignal
}

/** Redis's own defaults. */
export const UNLIMITED: Readonly<Record<string, string>> = {
  'client-output-buffer-limit': 'normal 0 0 0',
  'maxmemory-clients': '0',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
}

const MEGABYTE = 2 ** 20

/** Groups of commands that have so many bytes of replies. */
const groupsFor = (bytes: number) => Math.max(1, Math.round(bytes / GROUP_REPLY_BYTES))

const PIPELINE_COMMANDS = 100

const unread = ({ url, replyBytes, sendMs, holdMs, signal }: Work) =>
  readNothing({
    address: redisAddress(url).options,
    groups: groupsFor(replyBytes),
    ...{ sendMs, holdMs, signal },
  })

const read = (groupsPerPipeline: number, { url, replyBytes, signal }: Work) =>
  readAll({
    address: redisAddress(url).options,
    groups: groupsFor(replyBytes),
    ...{ groupsPerPipeline, signal },
  })

/** @param limitBytes what the limits allow; a quarter of what is asked for makes them visible. */
export function modes(limitBytes: number): Mode[] {
  const limit = `${Math.round(limitBytes / MEGABYTE)}mb`
  return [
    { id: 'unlimited', name: 'not read, no limit', settings: {}, run: unread },
    {
      id: 'output-limit',
      name: `not read, client-output-buffer-limit normal ${limit} 0 0`,
      settings: { 'client-output-buffer-limit': `normal ${limit} 0 0` },
      run: unread,
    },
    {
      id: 'client-memory',
      name: `not read, maxmemory-clients ${limit}`,
      settings: { 'maxmemory-clients': limit },
      run: unread,
    },
    {
      id: 'maxmemory',
      name: `not read, maxmemory ${limit} (noeviction)`,
      settings: { maxmemory: limit },
      run: unread,
    },
    {
      id: 'one-pipeline',
      name: 'read at once, all in one pipeline',
      settings: {},
      run: (work) => read(Number.POSITIVE_INFINITY, work),
    },
    {
      id: 'pipelines',
      name: `read at once, ${PIPELINE_COMMANDS} commands in a pipeline`,
      settings: {},
      run: (work) => read(PIPELINE_COMMANDS / GROUP_COMMANDS, work),
    },
    {
      id: 'store',
      name: 'our store, 500 calls at a time',
      settings: {},
      run: (work) => store(500, work),
    },
    {
      id: 'store-at-once',
      name: 'our store, all calls at once',
      settings: {},
      run: (work) => store(Number.POSITIVE_INFINITY, work),
    },
  ]
}

/** A call of `viewedItems` is HGET and ZREVRANGE; 25 views of long names are answered with about this. */
const CALL_COMMANDS = 2
const CALL_REPLY_BYTES = 4_000

/** The thread of a store stops for so long in the middle of its work. */
const STALL_MS = 300

async function store(atATime: number, { url, replyBytes, signal }: Work): Promise<Reading> {
  const calls = Math.ceil(replyBytes / CALL_REPLY_BYTES)
  const workerData: StoreWork = { url, calls, atATime, stallMs: STALL_MS }
  const worker = new Worker(new URL('./slow-reader-store.ts', import.meta.url), { workerData })
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
