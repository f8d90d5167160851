import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type StoreWarning, warningChannel } from '@onetrip/session-store'
import {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { type LoggerOptions, pino } from 'pino'

/**
 * Logs JSON lines; in a terminal, formatted text.
 *
 * Our log lines contain no token, cookie or password. Redaction is a second line of defense for future log
 * lines, and for errors of ioredis, which contain the arguments of the command.
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

/** Time limit for the last lines when the process exits. */
const MAX_FLUSH_MS = 1_000

/**
 * Standard output, as pino writes to it by default. A reader that has stopped or exited does not prevent the process
 * from exiting.
 *
 * package.json overrides the sonic-boom of pino 10 (4.x) with 5.0.2: version 4 retries forever at exit if the reader
 * has exited (EPIPE), version 5 throws. Remove the override when pino itself depends on sonic-boom 5.
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
      // Drops the remaining lines: the reader has exited (EPIPE) or stopped (EAGAIN), or the disk is full (ENOSPC).
      // pino calls this at exit, where an error would print a stack, and after a fatal line, where pino ignores it.
      // While the process runs, a failed write other than EPIPE is an `error` event, which ends the process.
    } finally {
      flushUntil = Number.POSITIVE_INFINITY
    }
  }
  return stream
}

/**
 * Collects the warnings of the store, which may warn before there is a logger.
 *
 * @returns Function that logs them and all later ones; without a logger, it drops them.
 */
export function loggerOfWarnings(): (log: Pick<FastifyBaseLogger, 'warn'> | undefined) => void {
  const early: StoreWarning[] = []
  let handle = (warning: StoreWarning): void => void early.push(warning)
  warningChannel.subscribe((warning) => handle(warning as StoreWarning))
  return (log) => {
    handle = ({ code, message }) => log?.warn({ code }, message)
    for (const warning of early.splice(0)) handle(warning)
  }
}

/** Valid request ids of clients. They appear in logs and headers. */
const REQUEST_ID = /^[\w.:/+=-]{1,64}$/

/**
 * Uses the `x-request-id` header if it is valid. Otherwise the id is a random prefix of the process and a
 * counter: random bytes for every request take as much time as parsing its head.
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
 * Limits log lines per error code, so that an outage does not flood the log. `/metrics` counts all errors.
 *
 * @param now Current time in milliseconds.
 * @returns Function of an error code. It returns undefined if the line must be suppressed, otherwise the
 *   number of lines suppressed since the last one.
 */
export function lineLimit(
  perSecond: number,
  now: () => number = () => performance.now(),
): (code: string) => number | undefined {
  const byCode = new Map<string, { second: number; lines: number; suppressed: number }>()
  return (code) => {
    const second = Math.floor(now() / 1000)
    const last = byCode.get(code) ?? { second, lines: 0, suppressed: 0 }
    byCode.set(code, last)
    if (last.second !== second) Object.assign(last, { second, lines: 0 })
    if (last.lines === perSecond) {
      last.suppressed++
      return undefined
    }
    const { suppressed } = last
    Object.assign(last, { lines: last.lines + 1, suppressed: 0 })
    return suppressed
  }
}

/**
 * Path segments that are safe to log. A token (76 characters) and its signature (43) are too long, and
 * percent-encoded text contains `%`.
 */
const PLAIN_SEGMENT = /^[\w.-]{0,32}$/

/** The path without its query, which may contain secrets. Segments that are not plain become `[hidden]`. */
const pathOf = (url: string) =>
  url
    .split('?', 1)[0]
    ?.replace(/[^/]+/g, (segment) => (PLAIN_SEGMENT.test(segment) ? segment : '[hidden]'))
    .slice(0, 200)

/**
 * Logs one line per answered request if enabled. Disabled by default: a line takes more CPU time than the
 * route. The error handler logs errors in any case.
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
