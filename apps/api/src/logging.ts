import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { type LoggerOptions, pino } from 'pino'

/**
 * JSON lines, or pretty ones in a terminal.
 *
 * No line of ours has a token, a cookie or a password in it; these paths are for the line that somebody
 * adds one day, and for ioredis, whose errors carry the arguments of their command.
 */
export function loggerOptions(level: string, terminal: boolean): LoggerOptions {
  return {
    level,
    redact: {
      paths: [
        'req.headers',
        'res.headers',
        'headers',
        'token',
        'cookie',
        'password',
        'err.command.args',
      ],
      censor: '[hidden]',
    },
    ...(terminal && { transport: { target: 'pino-pretty' } }),
  }
}

/** For the lines that are left when the process ends. */
const MAX_FLUSH_MS = 1_000

/**
 * Standard output, as pino writes to it by default, but a reader that has stopped or gone does not keep the
 * process from ending: sonic-boom would retry for ever.
 */
export function standardOutput() {
  let flushUntil = Number.POSITIVE_INFINITY
  const stream = pino.destination({
    dest: 1,
    sync: false,
    retryEAGAIN: () => performance.now() < flushUntil,
  })
  const flushSync = stream.flushSync.bind(stream)
  stream.flushSync = () => {
    flushUntil = performance.now() + MAX_FLUSH_MS
    try {
      flushSync()
    } catch {
      // Nobody reads these lines.
    } finally {
      flushUntil = Number.POSITIVE_INFINITY
    }
  }
  return stream
}

/** What a request id may look like that comes from outside: it goes into logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,64}$/

/**
 * The `x-request-id` of a request if it is well-formed, or else an id of our own: random for the
 * process and counted, since random bytes for every request cost as much as the rest of its head.
 */
export function requestIds(): (request: IncomingMessage) => string {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return (request) => {
    const given = request.headers['x-request-id'] as string | undefined
    if (given !== undefined && REQUEST_ID.test(given)) return given
    count = (count + 1) | 0
    return `${prefix}-${(count >>> 0).toString(36)}`
  }
}

/**
 * So that an outage costs no more in lines than in answers: of each code, `perSecond` lines are let
 * through in a second. How many failed, `/metrics` tells.
 *
 * @param now Milliseconds, from any beginning.
 * @returns What says, for a code, how many lines were left out since the one before, or undefined: leave
 *   this one out, too.
 */
export function lineLimit(
  perSecond: number,
  now: () => number = () => performance.now(),
): (code: string) => number | undefined {
  const byCode = new Map<string, { second: number; lines: number; leftOut: number }>()
  return (code) => {
    const second = Math.floor(now() / 1000)
    const last = byCode.get(code) ?? { second, lines: 0, leftOut: 0 }
    byCode.set(code, last)
    if (last.second !== second) Object.assign(last, { second, lines: 0 })
    if (last.lines === perSecond) {
      last.leftOut++
      return undefined
    }
    const { leftOut } = last
    Object.assign(last, { lines: last.lines + 1, leftOut: 0 })
    return leftOut
  }
}

/**
 * A part of a path that may be logged. A token (76 characters) and its signature (43) are too long, and
 * percent-encoded text has a `%`.
 */
const PLAIN_SEGMENT = /^[\w.-]{0,32}$/

/** The path without its query, in which anything may be, and with `[hidden]` for parts that are not plain. */
const pathOf = (url: string) =>
  url
    .split('?', 1)[0]
    ?.replace(/[^/]+/g, (segment) => (PLAIN_SEGMENT.test(segment) ? segment : '[hidden]'))
    .slice(0, 200)

/**
 * One line for each request when it is answered, or none (the default: a line costs more than the
 * route). Errors are logged by their handler in any case.
 */
export class RequestLog extends LogController {
  constructor({ enabled }: { enabled: boolean }) {
    super({ disableRequestLogging: !enabled })
  }

  override incomingRequest(): void {}

  override requestCompleted(
    error: Error | null,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (this.isLogDisabled(request)) return
    const { method, url } = request
    reply.log.info(
      {
        method,
        path: pathOf(url),
        status: reply.statusCode,
        milliseconds: Number(reply.elapsedTime.toFixed(3)),
        ...(error && { err: error }),
      },
      'answered',
    )
  }
}
