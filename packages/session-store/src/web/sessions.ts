import type { DataOption, MaybeData, PatchOptions, SessionData } from '../data/data.ts'
import { StoreError } from '../errors.ts'
import { checkFunctions, checkOptions } from '../input.ts'
import { checkOptionNames, type NamesOf } from '../option-names.ts'
import { createSessionStore } from '../store.ts'
import {
  type LoginOptions,
  type SessionStoreOptions,
  storeOptionNames,
  type ViewOptions,
} from '../store-options.ts'
import type { NewSession, SessionStore } from '../store-types.ts'
import type { RecordedView, Session, ViewedItem } from '../updates.ts'
import { type CookieOptions, type SessionCookie, sessionCookie } from './cookie.ts'
import { isCrossSite, originsOf, type WebRequest } from './cross-site.ts'
import { SessionRequestError } from './errors.ts'

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
  | { store: SessionStore }
  | ({ store?: never } & SessionStoreOptions & OwnStoreOptions)

interface OwnStoreOptions {
  /** Maximum wait for Redis at startup. Default 8,000: Fastify's `pluginTimeout` is 10 s. */
  readyTimeoutMs?: number | undefined
}

const optionNames: NamesOf<WebOptions & OwnStoreOptions & SessionStoreOptions & { store: true }> = {
  cookie: true,
  publicOrigins: true,
  bearer: true,
  readyTimeoutMs: true,
  store: true,
  ...storeOptionNames,
}

type DataFields = Readonly<Record<string, unknown>>

/** The session of one request. It reads and sends nothing until you use a property or function. */
export interface RequestSession {
  /**
   * The token of the request, from `Authorization: Bearer` or the cookie. The store verifies it.
   *
   * @throws SessionRequestError `ONETRIP_LOGIN_REQUIRED` if there is none; `ONETRIP_SEVERAL_COOKIES`; for a
   *   token in a cookie, `ONETRIP_CROSS_SITE`. All functions below throw these, too.
   */
  readonly token: string
  /** The store's `checkToken`. One round trip. */
  check<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked>>
  /** The store's `touch`. Two round trips; one if it was last seen less than `unlessWithinSeconds` ago. */
  touch(unlessWithinSeconds?: number): Promise<Session>
  /** The store's `recordView`. One round trip, shared with concurrent requests. */
  recordView<Asked extends ViewOptions>(
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked>>
  /** The store's `viewedItems`. One round trip. */
  viewedItems(): Promise<ViewedItem[]>
  /** The store's `data`. One round trip. */
  data(): Promise<SessionData>
  /** The store's `patch`. One round trip. */
  patch(fields: DataFields, options?: PatchOptions): Promise<{ version: number }>
  /**
   * CSRF protection for a route without a session. `login`, and functions that read the token from the cookie,
   * include it.
   *
   * @throws SessionRequestError `ONETRIP_CROSS_SITE` if a page of another origin sent this state-changing
   *   request.
   */
  refuseCrossSite(): void
}

export interface LoggedIn extends NewSession {
  user: string
}

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
  checkOptions('the sessions plugin', options)
  checkOptionNames('the sessions plugin', options, optionNames)
  const { store: given, cookie, publicOrigins = [], bearer = true, ...ownStore } = options
  if (typeof bearer !== 'boolean') throw new TypeError('bearer must be true or false')
  const shared = { cookie: sessionCookie(cookie), origins: originsOf(publicOrigins), bearer }
  if (given) {
    const others = Object.entries(ownStore).filter(([, value]) => value !== undefined)
    if (others.length > 0) {
      const names = others.map(([name]) => name).join(', ')
      throw new TypeError(`options without effect, because a store is given: ${names}`)
    }
    checkFunctions('store', given, ['login', 'checkToken', 'recordView', 'logout'])
    return { ...shared, store: given, close: async () => undefined }
  }
  const { readyTimeoutMs = 8_000, ...storeOptions } = ownStore as SessionStoreOptions &
    OwnStoreOptions
  const store = createSessionStore(storeOptions)
  try {
    await store.ready(readyTimeoutMs)
  } catch (error) {
    await store.close()
    throw error
  }
  return { ...shared, store, close: () => store.close() }
}

const BEARER = /^bearer +/i

/** Implements the session of one request, and login and logout for both frameworks. */
export class WebSession implements RequestSession {
  readonly #web: Web
  readonly #request: WebRequest
  #token: string | undefined

  constructor(web: Web, request: WebRequest) {
    this.#web = web
    this.#request = request
  }

  get token(): string {
    this.#token ??= this.#readToken()
    return this.#token
  }

  #readToken(): string {
    const bearer = this.#bearer()
    if (bearer !== undefined) return bearer
    const token = this.#web.cookie.read(this.#request.headers.cookie)
    if (!token) throw new SessionRequestError('ONETRIP_LOGIN_REQUIRED')
    // Browsers add cookies, but not bearer tokens, to requests that other sites trigger.
    this.refuseCrossSite()
    return token
  }

  /** The token of `Authorization: Bearer`; undefined if there is none or the option `bearer` is false. */
  #bearer(): string | undefined {
    const { authorization } = this.#request.headers
    if (authorization === undefined || !this.#web.bearer) return undefined
    const scheme = BEARER.exec(authorization)
    return scheme ? authorization.slice(scheme[0].length) : undefined
  }

  refuseCrossSite(): void {
    if (isCrossSite(this.#request, this.#web.origins)) {
      throw new SessionRequestError('ONETRIP_CROSS_SITE')
    }
  }

  async check<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked>> {
    return await this.#web.store.checkToken(this.token, options)
  }

  async touch(unlessWithinSeconds?: number): Promise<Session> {
    return await this.#web.store.touch(this.token, unlessWithinSeconds)
  }

  async recordView<Asked extends ViewOptions>(
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked>> {
    return await this.#web.store.recordView(this.token, item, options)
  }

  async viewedItems(): Promise<ViewedItem[]> {
    return await this.#web.store.viewedItems(this.token)
  }

  async data(): Promise<SessionData> {
    return await this.#web.store.data(this.token)
  }

  async patch(fields: DataFields, options?: PatchOptions): Promise<{ version: number }> {
    return await this.#web.store.patch(this.token, fields, options)
  }

  /** Starts a session with a new token; a guest session of the request passes its data on. Ends the cookie's. */
  async login(
    user: string,
    options: LoginOptions | undefined,
    setCookie: (header: string) => void,
  ): Promise<LoggedIn> {
    // Login CSRF: a page of another origin could log its visitors in to the attacker's session.
    this.refuseCrossSite()
    const { store, cookie } = this.#web
    const replaced = cookie.read(this.#request.headers.cookie)
    const from = options?.from ?? this.#token ?? this.#bearer() ?? replaced
    // Always a new token, never the one that the client sent: no session fixation.
    const session = await store.login(user, { ...options, from })
    if (replaced) {
      // The browser replaces this token. If logout fails, the old session ends when it is idle.
      await store.logout(replaced).catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error
      })
    }
    return { ...this.#begin(session, setCookie), user }
  }

  async loginGuest(setCookie: (header: string) => void): Promise<NewSession> {
    this.refuseCrossSite()
    return this.#begin(await this.#web.store.loginGuest(), setCookie)
  }

  #begin(session: NewSession, setCookie: (header: string) => void): NewSession {
    this.#token = session.token
    setCookie(this.#web.cookie.write(session.token, session.expiresAt))
    return session
  }

  /** Ends the session. Keeps the cookie if the session may still exist, so that the client can retry. */
  async logout(setCookie: (header: string) => void): Promise<boolean> {
    const { token } = this
    try {
      const ended = await this.#web.store.logout(token)
      this.clearCookie(setCookie)
      return ended
    } catch (error) {
      if (error instanceof StoreError && error.statusCode === 401) this.clearCookie(setCookie)
      throw error
    }
  }

  clearCookie(setCookie: (header: string) => void): void {
    setCookie(this.#web.cookie.cleared)
  }
}
