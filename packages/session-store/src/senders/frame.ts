import { type Command as IoredisCommand, Redis } from 'ioredis'
import type { Client } from '../connections/client.ts'
import { framesAreVerified } from '../connections/ioredis-version.ts'
import { publishRoundTrip } from '../diagnostics.ts'
import { notSent, type Outcome } from '../outcomes.ts'
import type { Command, Reply } from '../updates.ts'
import { pipeline, type Wire } from './wires.ts'

/**
 * A frame: many commands written to a connection as one string.
 *
 * `redis.call()` and the `Pipeline` object spend more on each command (a promise, closures, flattened
 * arguments, tracing) than Redis does. This hands ioredis only what it needs to match a reply to its
 * command. It leans on how ioredis treats a command inside `sendCommand`, which may change with any
 * release: ioredis-version.ts names the versions that it was verified with.
 */
const frame: Wire = {
  name: 'frame',
  send(client, commands) {
    publishRoundTrip(commands.length)
    return sendFrame(client as Redis, commands)
  },
}

/** `frame` where all clients can be used so, else `pipeline`. */
export const framedWhere = (clients: readonly Client[]): Wire =>
  clients.every(canFrame) ? frame : pipeline

/**
 * Whether a frame can be written to this client: a connection made by the copy of ioredis that this
 * package imports, in a version that was verified. A cluster must process each command itself.
 */
const canFrame = (client: Client): boolean => framesAreVerified && client instanceof Redis

function sendFrame(redis: Redis, commands: readonly Command[]): Promise<Outcome[]> {
  return new Promise((resolve, reject) => {
    const text = encode(commands) // first, since it must not fail once replies are awaited
    const replies = new Replies(commands.length, resolve)
    // All in one turn: either the frame takes its places in ioredis's queue of replies, or none.
    redis.sendCommand(replies as unknown as IoredisCommand, sink)
    if (replies.outcomes.length > 0) {
      reject(notSent('there is no connection', replies.outcomes[0]))
      return
    }
    const { commandQueue } = redis as unknown as QueueOfReplies
    const place = commandQueue.peekBack()
    for (let index = 1; index < commands.length; index++) commandQueue.push(place)
    redis.stream.write(text)
  })
}

/** Where ioredis finds whom the next reply is for. */
interface QueueOfReplies {
  readonly commandQueue: { peekBack(): unknown; push(place: unknown): void }
}

/**
 * Stands where ioredis expects a `Command` that has been written already: once for each command of the
 * frame, since replies come in their order.
 */
class Replies {
  /** No command's, so that ioredis treats none of them in a way of its own. */
  readonly name = 'frame'
  /** ioredis copies the arguments into errors; ours hold names and ids of sessions. */
  readonly args: readonly string[] = []
  /** Keeps ioredis from tracing each command by itself. */
  readonly isTraced = true
  readonly promise = undefined
  readonly outcomes: Outcome[] = []
  readonly #expected: number
  readonly #done: (outcomes: Outcome[]) => void

  constructor(expected: number, done: (outcomes: Outcome[]) => void) {
    this.#expected = expected
    this.#done = done
  }

  setReplyContext(): void {}

  toWritable(): string {
    return ''
  }

  resolve(reply: unknown): void {
    this.#add(decode(reply))
  }

  reject(error: Error): void {
    this.#add(error)
  }

  #add(outcome: Outcome): void {
    if (this.outcomes.push(outcome) === this.#expected) this.#done(this.outcomes)
  }
}

/** Where ioredis writes a command of a pipeline; the frame writes all of them itself. */
const sink = {
  isPipeline: true,
  destination: { redis: { stream: null } },
  write() {},
} as unknown as Parameters<Redis['sendCommand']>[1]

function encode(commands: readonly Command[]): string {
  let frame = ''
  for (const command of commands) {
    frame += `*${command.length}\r\n`
    for (const argument of command) {
      const text = typeof argument === 'string' ? argument : String(argument)
      frame += `$${Buffer.byteLength(text)}\r\n${text}\r\n`
    }
  }
  return frame
}

/** ioredis's parser gives bytes. */
function decode(reply: unknown): Outcome {
  if (Buffer.isBuffer(reply)) return reply.toString()
  if (Array.isArray(reply)) return reply.map(decode) as Reply
  return reply as Outcome
}
