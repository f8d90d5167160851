import { type Command as IoredisCommand, Redis } from 'ioredis'
import type { Command, Reply } from '../command.ts'
import { publishWarning } from '../diagnostics.ts'
import { whyUnverified } from './ioredis-version.ts'
import { notSent, type Outcome } from './outcomes.ts'

/** ioredis keeps the status `ready` from the end of a connection until its event `close`. */
export const isWritable = ({ status, stream }: Redis): boolean =>
  status === 'ready' && stream.writable

/** Sends commands over one connection, in one round trip. Outcomes as of `Sender.send`. */
export type Send = (redis: Redis, commands: readonly Command[]) => Promise<Outcome[]>

/**
 * `sendFrame` if it works with the installed ioredis, otherwise `sendPipeline`, with a warning. A client of another copy
 * of ioredis always gets a pipeline.
 */
export function sendWith(): Send {
  if (whyUnverified === undefined) {
    return (redis, commands) =>
      redis instanceof Redis ? sendFrame(redis, commands) : sendPipeline(redis, commands)
  }
  publishWarning({
    code: 'ONETRIP_FRAMES_OFF',
    message: `the store sends pipelines of ioredis instead of frames, which costs about half of the gain in CPU: ${whyUnverified}`,
  })
  return sendPipeline
}

export const sendPipeline: Send = async (redis, commands) => {
  const queued = redis.pipeline()
  for (const [name, ...args] of commands) queued.call(name, ...args)
  const results = (await queued.exec()) ?? []
  return results.map(([error, reply]) => error ?? (reply as Reply))
}

/**
 * A frame: many commands written to a connection as one string.
 *
 * For each command, `redis.call()` and the `Pipeline` object take more CPU (a promise, closures, flattened
 * arguments, tracing) than Redis. A frame gives ioredis only what it needs to match replies to commands. It
 * depends on internals of `sendCommand`, which may change with any release of ioredis: ioredis-version.ts lists
 * the verified versions.
 */
function sendFrame(redis: Redis, commands: readonly Command[]): Promise<Outcome[]> {
  return new Promise((resolve, reject) => {
    if (commands.length === 0) return resolve([])
    const [text, encoding] = encode(commands) // first: it must not throw after ioredis expects replies
    // Otherwise ioredis would keep the frame in its offline queue, which some clients have.
    if (!isWritable(redis)) return reject(notSent('there is no connection'))
    const replies = new Replies(commands.length, resolve)
    // Synchronous, so that ioredis's queue expects either all replies of the frame or none.
    redis.sendCommand(replies as unknown as IoredisCommand, sink)
    if (replies.outcomes.length > 0) {
      reject(notSent('there is no connection', replies.outcomes[0]))
      return
    }
    const { commandQueue } = redis as unknown as QueueOfReplies
    const place = commandQueue.peekBack()
    for (let index = 1; index < commands.length; index++) commandQueue.push(place)
    redis.stream.write(text, encoding)
  })
}

/** ioredis's queue of commands that are waiting for replies. */
interface QueueOfReplies {
  readonly commandQueue: { peekBack(): unknown; push(place: unknown): void }
}

/**
 * Takes the place of a `Command` that ioredis has written. It is in ioredis's queue once for each command of the
 * frame, and collects the replies in order.
 */
class Replies {
  /** Not the name of a command, because ioredis treats some commands specially. */
  readonly name = 'frame'
  /** Empty, because ioredis copies the arguments into errors, and they contain users and session ids. */
  readonly args: readonly string[] = []
  /** Prevents ioredis from tracing each command. */
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

/** Receives what ioredis would write, and drops it: the frame is written directly. */
const sink = {
  isPipeline: true,
  destination: { redis: { stream: null } },
  write() {},
} as unknown as Parameters<Redis['sendCommand']>[1]

function encode(commands: readonly Command[]): [frame: string, encoding: 'latin1' | 'utf8'] {
  const frame = encodeWith(commands, (text) => text.length)
  // Redis counts bytes. Usually all characters are ASCII: to ask once is cheaper than for each argument.
  return Buffer.byteLength(frame) === frame.length
    ? [frame, 'latin1']
    : [encodeWith(commands, (text) => Buffer.byteLength(text)), 'utf8']
}

/** Constants are cheaper to append than templates, and fewer parts leave less to the garbage collector. */
const lengths = Array.from({ length: 128 }, (_, length) => `\r\n$${length}\r\n`)

function encodeWith(commands: readonly Command[], lengthOf: (text: string) => number): string {
  let frame = ''
  for (const command of commands) {
    frame += `*${command.length}`
    for (const argument of command) {
      const text = typeof argument === 'string' ? argument : String(argument)
      const length = lengthOf(text)
      frame += lengths[length] ?? `\r\n$${length}\r\n`
      frame += text
    }
    frame += '\r\n'
  }
  return frame
}

/** ioredis's parser returns texts as buffers. */
function decode(reply: unknown): Outcome {
  if (Buffer.isBuffer(reply)) return reply.toString()
  return Array.isArray(reply) ? (reply.map(decode) as Reply) : (reply as Outcome)
}
