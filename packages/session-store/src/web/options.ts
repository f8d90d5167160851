import { checkedOptions, checkFunctions, MAX_TIMEOUT_MS } from '../input.ts'
import { type SessionStoreOptions, storeDefaults } from '../options.ts'
import { SessionStore } from '../store.ts'
import type { TokensOptions } from '../tokens/tokens.ts'
import { type CookieOptions, type SessionCookie, sessionCookie } from './cookie.ts'
import { originsOf } from './cross-site.ts'

export interface WebOptions {
  /** Default: a cookie `__Host-onetrip`, sent over HTTPS only. */
  cookie?: CookieOptions | undefined
  /**
   * Origins, such as `https://shop.example`, whose pages may send state-changing requests with the cookie, in
   * addition to the origin in `Host`. Needed behind a proxy that changes `Host`. Default: none.
   */
  publicOrigins?: readonly string[] | undefined
  /** Also accept a token in `Authorization: Bearer`. It takes precedence over the cookie. Default true. */
  bearer?: boolean | undefined
}

/** Your own store, which is not closed, or the options to create one. */
export type StoreChoice =
  // biome-ignore lint/suspicious/noExplicitAny: a store with any fields, whose types `request.session` does not know
  | { store: SessionStore<any> }
  | ({ store?: never; tokens: TokensOptions } & SessionStoreOptions & OwnStoreOptions)

interface OwnStoreOptions {
  /** Maximum wait for Redis at startup. Default 8,000: Fastify's `pluginTimeout` is 10 s. */
  readyTimeoutMs?: number | undefined
}

const WEB_DEFAULTS = { cookie: {}, publicOrigins: [], bearer: true, store: undefined }
const DEFAULTS = { ...WEB_DEFAULTS, readyTimeoutMs: 8_000, ...storeDefaults }
const kinds = { bearer: 'boolean', readyTimeoutMs: { min: 0, max: MAX_TIMEOUT_MS } } as const

/** What all requests of an application share. */
export interface Web {
  readonly store: SessionStore
  readonly cookie: SessionCookie
  readonly origins: ReadonlySet<string>
  readonly bearer: boolean
  /** Closes the store if it was created here. */
  close(): Promise<void>
}

/**
 * Checks the options, and creates the store unless one is given. Resolves once Redis is ready.
 *
 * @throws TypeError for unusable options; the errors of the store's `ready`.
 */
export async function openWeb(options: WebOptions & StoreChoice): Promise<Web> {
  const checked = checkedOptions<
    WebOptions & OwnStoreOptions & { store?: SessionStore },
    typeof DEFAULTS
  >('the sessions plugin', options, DEFAULTS, kinds)
  const { store: given, cookie, publicOrigins, bearer, readyTimeoutMs } = checked
  const shared = { cookie: sessionCookie(cookie), origins: originsOf(publicOrigins), bearer }
  const own = Object.entries(options).filter(
    ([name, value]) => value !== undefined && !Object.hasOwn(WEB_DEFAULTS, name),
  )
  if (given !== undefined) {
    const names = own.map(([name]) => name).join(', ')
    if (names) throw new TypeError(`options without effect, because a store is given: ${names}`)
    checkFunctions('store', given, ['login', 'checkToken', 'recordView', 'logout'])
    return { ...shared, store: given, close: async () => undefined }
  }
  const { readyTimeoutMs: _, ...storeOptions } = Object.fromEntries(own)
  const store = new SessionStore(storeOptions as SessionStoreOptions)
  try {
    await store.ready(readyTimeoutMs)
  } catch (error) {
    await store.close()
    throw error
  }
  return { ...shared, store, close: () => store.close() }
}
