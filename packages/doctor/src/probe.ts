import { Redis, type RedisOptions } from 'ioredis'
import { hideCredentials, redisAddress } from './address.ts'
import { parseInfo } from './info.ts'
import { messageOf, Problem } from './problem.ts'
import { OWN_NAME } from './replies.ts'

/** A command without a reply, whose data is missing in the report. */
export interface Unseen {
  command: string
  reason: string
}

/** A read-only connection. Commands that Redis refuses are recorded in `unseen`. */
export class Probe {
  readonly unseen: Unseen[] = []
  readonly #redis: Redis
  readonly #url: string

  private constructor(redis: Redis, url: string) {
    this.#redis = redis
    this.#url = url
  }

  /**
   * @throws Problem when there is no Redis at `url`, when it refuses the connection or the credentials, or when
   *   this user may not ask for INFO.
   */
  static async connect(url: string): Promise<Probe> {
    const limits = { connectTimeout: 5_000, commandTimeout: 5_000, enableReadyCheck: false }
    const redis = await connectOnce({
      ...redisAddress(url),
      ...limits,
      connectionName: OWN_NAME,
      protocol: 2,
      disableClientInfo: true,
      db: 0,
    }).catch((error: unknown) => {
      throw unusable(url, error)
    })
    const probe = new Probe(redis, url)
    try {
      await probe.info() // a server at maxclients accepts the connection and then closes it
      return probe
    } catch (error) {
      probe.close()
      throw error
    }
  }

  /** The reply to INFO. @throws Problem when there is none. */
  async info(): Promise<ReadonlyMap<string, string>> {
    try {
      return parseInfo(await this.#redis.info('everything'))
    } catch (error) {
      if (!isReply(error)) throw unusable(this.#url, error)
      const { message } = error
      throw new Problem(
        `The user lacks permission for INFO: ${message}. --help lists the permissions.`,
      )
    }
  }

  /**
   * Sends a command.
   *
   * @returns the reply; null if Redis refused the command. `unseen` then has the reason.
   * @throws Problem when the connection fails.
   */
  async ask(name: string, ...args: string[]): Promise<unknown> {
    try {
      return await this.#redis.call(name, ...args)
    } catch (error) {
      if (!isReply(error)) throw unusable(this.#url, error)
      const [message = ''] = error.message.split(', with args') // omits the arguments
      this.skip([name, args[0]].join(' '), message)
      return null
    }
  }

  /** Records a command that was not sent or was refused, once. */
  skip(command: string, reason: string): void {
    if (!this.unseen.some((one) => one.command === command)) this.unseen.push({ command, reason })
  }

  close(): void {
    this.#redis.disconnect()
  }
}

/** Whether an error is a reply of Redis, not a failure of the connection. */
const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError'

function unusable(url: string, error: unknown): Problem {
  const why = messageOf(error)
  // At maxclients, Redis sends the reason and closes at once, so the reason may be lost.
  const full = /max number of clients|EPIPE|ECONNRESET|closed/.test(why)
    ? ' If maxclients is reached, applications get the same error: close unused connections, or raise maxclients.'
    : ''
  return new Problem(`The Redis at ${hideCredentials(url)} cannot be used: ${why}.${full}`)
}

/** Connects without retries. @throws the socket's error: `connect()` rejects only with "Connection is closed". */
async function connectOnce(options: Omit<RedisOptions, 'replyMapping'>): Promise<Redis> {
  const never = { maxRetriesPerRequest: 0, retryStrategy: null, lazyConnect: true }
  const redis = new Redis({ ...options, ...never })
  let reason: unknown
  redis.on('error', (error) => {
    reason ??= error
  })
  await redis.connect().catch((error) => {
    throw reason ?? error
  })
  return redis
}
