import { parseInfo } from '@onetrip/session-store'
import { hideCredentials, redisAddress } from '@onetrip/stack/address.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import type { Redis } from 'ioredis'
import { connectOnce } from '../drivers/redis/connect.ts'
import { commandName } from '../experiment/figures.ts'
import { OWN_NAME } from './replies.ts'

/** A command that was not answered, so that a part of the picture is missing. */
export interface Unseen {
  command: string
  reason: string
  /** The ACL rule that permits it; null where permission is not what is missing. */
  rule: string | null
}

/** A connection that only reads. What is refused is left out, and noted. */
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
      ...{ ...redisAddress(url).options, ...limits, connectionName: OWN_NAME },
      ...{ protocol: 2, disableClientInfo: true, db: 0 },
    }).catch((error: unknown) => {
      throw unusable(url, error)
    })
    const probe = new Probe(redis, url)
    try {
      await probe.info() // a server without room closes the connection only then
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
      throw new Problem(`INFO is not permitted: ${message}. It needs ${this.rulesText(['+info'])}`)
    }
  }

  /**
   * Sends a command.
   *
   * @param rule the ACL rule that permits it, `+client|list`.
   * @returns the reply; null when Redis refused, which is noted in `unseen` once.
   * @throws the error of the connection.
   */
  async ask(rule: string, name: string, ...args: string[]): Promise<unknown> {
    const command = commandName(rule.slice(1))
    try {
      return await this.#redis.call(name, ...args)
    } catch (error) {
      if (!isReply(error)) throw unusable(this.#url, error)
      const [message = ''] = error.message.split(', with args') // which would name keys
      const needed = /\bkey/.test(message) ? `${rule} %R~*` : rule
      this.skip(command, message, message.startsWith('NOPERM') ? needed : null)
      return null
    }
  }

  /** Notes what was not asked or not answered. */
  skip(command: string, reason: string, rule: string | null = null): void {
    if (!this.unseen.some((one) => one.command === command))
      this.unseen.push({ command, reason, rule })
  }

  /** The command that gives its user the missing permissions. */
  rulesText(rules = this.unseen.flatMap(({ rule }) => rule ?? [])): string {
    const words = new Set(rules.flatMap((rule) => rule.split(' ')))
    const { username = 'default' } = redisAddress(this.#url).options
    return `ACL SETUSER ${username} ${[...words].join(' ')}`
  }

  close(): void {
    this.#redis.disconnect()
  }
}

/** An error that Redis replied, as opposed to one of the connection. */
const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError'

function unusable(url: string, error: unknown): Problem {
  const why = messageOf(error)
  // Redis writes why and closes at once: the reason may be lost.
  const full = /max number of clients|EPIPE|ECONNRESET|closed/.test(why)
    ? ' If maxclients is reached, applications get the same error: close connections that nobody uses, or raise it.'
    : ''
  return new Problem(`The Redis at ${hideCredentials(url)} cannot be used: ${why}.${full}`)
}
