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
    const frame: Frame = {
      outcomes: new Array<Outcome>(commands.length).fill(null),
      missing: commands.length,
      resolve,
    }
    // All in one turn: either each of them takes its place in ioredis's queue of replies, or none.
    for (let index = 0; index < commands.length; index++) {
      const name = commands[index]?.[0] ?? ''
      const awaited = new AwaitedReply(name, frame, index) as unknown as IoredisCommand
      redis.sendCommand(awaited, sink)
    }
    if (frame.missing === 0) reject(notSent('there is no connection', frame.outcomes[0]))
    else redis.stream.write(text)
  })
}

interface Frame {
  readonly outcomes: Outcome[]
  missing: number
  resolve(outcomes: Outcome[]): void
}

/** Stands where ioredis expects a `Command` that has been written already. */
class AwaitedReply {
  readonly name: string
  /** ioredis copies the arguments into errors; ours hold names and ids of sessions. */
  readonly args: readonly string[] = []
  /** Keeps ioredis from tracing each command by itself. */
  readonly isTraced = true
  readonly promise = undefined
  readonly #frame: Frame
  readonly #index: number

  constructor(name: string, frame: Frame, index: number) {
    this.name = name
    this.#frame = frame
    this.#index = index
  }

  setReplyContext(): void {}

  toWritable(): string {
    return ''
  }

  resolve(reply: unknown): void {
    this.#settle(decode(reply))
  }

  reject(error: Error): void {
    this.#settle(error)
  }

  #settle(outcome: Outcome): void {
    const frame = this.#frame
    frame.outcomes[this.#index] = outcome
    if (--frame.missing === 0) frame.resolve(frame.outcomes)
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
