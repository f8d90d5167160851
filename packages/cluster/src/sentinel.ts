import { checkedOptions, type RedisOptions, retryDelayMs } from '@onetrip/session-store'
import { type Redis, SentinelConnector } from 'ioredis'
import { parseLocation, type SentinelAddress, sentinelOptions } from './location.ts'

export interface SentinelOptions {
  /** `redis+sentinel://user:password@host:port,host:port/name`, with TLS `rediss+sentinel://`; or its parts. */
  redis: string | SentinelAddress
}

/**
 * The options of a store that uses the current primary that Redis Sentinel names:
 * `new SessionStore({ ...sentinel({ redis }), tokens })`.
 *
 * @throws TypeError if an option is invalid.
 */
export function sentinel(options: SentinelOptions): { redis: RedisOptions } {
  const { redis } = checkedOptions('sentinel', options, { redis: undefined }, {})
  const address = typeof redis === 'string' ? parseLocation(redis).sentinel : redis
  if (!address) throw new TypeError('sentinel needs redis: a URL redis+sentinel:// or its parts')
  return { redis: { ...sentinelOptions(address), Connector: PrimaryConnector } }
}

type ConnectionOptions = ConstructorParameters<typeof SentinelConnector>[0]

/**
 * Leaves a primary as soon as the sentinels name another one, even if it is cut off from them and still answers. A
 * connection that does not reconnect asks each sentinel once.
 */
class PrimaryConnector extends SentinelConnector {
  constructor(given: unknown) {
    const options = given as ConnectionOptions & RedisOptions
    const reconnects = options.retryStrategy !== null
    super({
      ...options,
      failoverDetector: reconnects,
      sentinelCommandTimeout: options.connectTimeout,
      sentinelRetryStrategy: reconnects ? retryDelayMs : () => null,
      sentinelReconnectStrategy: retryDelayMs,
    })
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>) {
    const stream = await super.connect(...args)
    stream.once(this.options.tls ? 'secureConnect' : 'connect', () => this.#keepSubscribed())
    return stream
  }

  /**
   * ioredis would print the errors of the connections of its failover detector, and a resubscription without a reply
   * would be an unhandled rejection.
   */
  #keepSubscribed(): void {
    const { failoverDetector } = this as unknown as Detecting
    for (const { client } of failoverDetector?.sentinels ?? []) {
      client.on('error', () => {})
      client.options.autoResubscribe = false
      client.on('ready', () => {
        const { stream } = client
        client.subscribe('+switch-master').catch(() => stream.destroy()) // then it connects again
      })
    }
  }
}

interface Detecting {
  failoverDetector?: { sentinels: readonly { client: Redis }[] } | null
}
