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
  /** Default: `__Host-onetrip`, over HTTPS only. */
  cookie?: CookieOptions | undefined
  /**
   * Origins, as `https://shop.example`, whose pages may change state by cookie. Default: only the one whose
   * host the request names in `Host`. For a proxy that changes `Host`.
   */
  publicOrigins?: readonly string[] | undefined
  /** Whether a token in `Authorization: Bearer` is accepted, too. It wins over the cookie. Default true. */
  bearer?: boolean | undefined
}

/** A store of your own, which is used and not closed, or the options of one. */
export type StoreChoice =
  | { store: SessionStore }
  | ({ store?: never } & SessionStoreOptions & OwnStoreOptions)

interface OwnStoreOptions {
  /** How long the start waits for Redis. Default 8,000: Fastify gives a plugin 10 s (`pluginTimeout`). */
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

/** The session of one request. Nothing is read or sent until a property or function is used. */
export interface RequestSession {
  /**
   * The token of the request, from `Authorization: Bearer` or the cookie. The store verifies it.
   *
   * @throws SessionRequestError `ONETRIP_LOGIN_REQUIRED` when there is none, `ONETRIP_SEVERAL_COOKIES`, or,
   *   for a token in a cookie, `ONETRIP_CROSS_SITE`. All functions below throw these, too.
   */
  readonly token: string
  /** The store's `checkToken`. One round trip. */
  check<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked>>
  /** The store's `touch`. Two round trips; one if it was seen less than `unlessWithinSeconds` ago. */
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
   * CSRF protection for a request without a session: reading a token from the cookie and `login` do it
   * themselves.
   *
   * @throws SessionRequestError `ONETRIP_CROSS_SITE` when a page of another origin sent a request that
   *   changes state.
   */
  refuseCrossSite(): void
}

export interface LoggedIn extends NewSession {
  user: string
}

/** What one application shares between its requests. */
export interface Web {
  readonly store: SessionStore
  readonly cookie: SessionCookie
  readonly origins: ReadonlySet<string>
  readonly bearer: boolean
  /** Closes the store if it was created here. */
  close(): Promise<void>
}

/**
 * Checks the options, and creates the store unless one is given. Resolves once Redis can be used.
 *
 * @throws TypeError for options that cannot be used; what the store's `ready` throws.
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
      throw new TypeError(`these options have no effect on the store that is given: ${names}`)
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

/** The session of one request, and what the frameworks' login and logout do with it. */
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
    // Only a cookie is sent without the intention of the sender.
    this.refuseCrossSite()
    return token
  }

  /** The token of `Authorization: Bearer`; undefined when there is none, or it is not accepted. */
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

  /** Begins a session on a new token, with the data of the request's session if a guest's. Ends the cookie's. */
  async login(
    user: string,
    options: LoginOptions | undefined,
    setCookie: (header: string) => void,
  ): Promise<LoggedIn> {
    // A page of another origin must not log its visitors in: their views would go to its author's session.
    this.refuseCrossSite()
    const { store, cookie } = this.#web
    const replaced = cookie.read(this.#request.headers.cookie)
    // Never the token that the client sent: no session fixation.
    const from = options?.from ?? this.#token ?? this.#bearer() ?? replaced
    const session = await store.login(user, { ...options, from })
    if (replaced) {
      // The browser forgets it now. If it cannot be ended here, it ends as idle.
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

  /** Ends the session. The cookie stays where the session may go on, so that the logout can be tried again. */
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

  /** Removes the cookie. */
  clearCookie(setCookie: (header: string) => void): void {
    setCookie(this.#web.cookie.cleared)
  }
}
