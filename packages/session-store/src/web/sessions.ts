import type {
  DataOption,
  DataPatch,
  DeclaredFields,
  MaybeData,
  PatchOptions,
  SessionData,
} from '../data/read.ts'
import { StoreError } from '../errors.ts'
import { checkType } from '../input.ts'
import type { LoginOptions, ViewOptions } from '../options.ts'
import type { Session } from '../sessions/check.ts'
import type { NewSession, SessionStore } from '../store.ts'
import type { ViewedItem } from '../views/read.ts'
import type { RecordedView } from '../views/record.ts'
import { isCrossSite, type WebRequest } from './cross-site.ts'
import type { Web } from './options.ts'

export interface LoggedIn extends NewSession {
  user: string
}

/** The response to a request, in either framework. */
export interface WebResponse {
  /** Whether it is too late to set a cookie. */
  isSent(): boolean
  setCookie(header: string): void
}

/** The functions that need the response. */
export type Logins = 'login' | 'loginGuest' | 'logout' | 'clearCookie'

/** The session of one request, with its response. */
export type ResponseSession<Fields extends object = DeclaredFields> = Omit<
  WebSession<Fields>,
  'respondOn'
>

/**
 * The session of one request. It reads and sends nothing until you use a property or function.
 *
 * `Fields`: the types of the data fields. Default: `SessionDataFields`, which you declare.
 */
export type RequestSession<Fields extends object = DeclaredFields> = Omit<
  ResponseSession<Fields>,
  Logins
>

const BEARER = 'bearer '

/** Implements `RequestSession` and `ResponseSession` for both frameworks. */
export class WebSession<Fields extends object = DeclaredFields> {
  readonly #web: Web
  readonly #store: SessionStore<Fields>
  readonly #request: WebRequest
  #response: WebResponse | undefined
  #token: string | undefined
  #isCookie = false
  /** Whether the response sets or removes the cookie. */
  #setsCookie = false
  #isCrossSite: boolean | undefined

  constructor(web: Web, request: WebRequest, response?: WebResponse) {
    this.#web = web
    this.#store = web.store as SessionStore<object> as SessionStore<Fields>
    this.#request = request
    this.#response = response
  }

  /** Tells the session its response, which gets the cookies. */
  respondOn(response: WebResponse): this {
    this.#response ??= response
    return this
  }

  /**
   * The token of the request, from `Authorization: Bearer` or the cookie. The store verifies it.
   *
   * @throws StoreError `ONETRIP_LOGIN_REQUIRED` if there is none; `ONETRIP_SEVERAL_COOKIES`; for a token in a
   *   cookie, `ONETRIP_CROSS_SITE`. All functions below throw these, too.
   */
  get token(): string {
    this.#token ??= this.#readToken()
    return this.#token
  }

  #readToken(): string {
    const bearer = this.#bearer()
    if (bearer !== undefined) return bearer
    const [token = '', ...others] = this.#cookies()
    if (token === '' && others.length === 0) throw new StoreError('ONETRIP_LOGIN_REQUIRED')
    // Browsers add cookies, but not bearer tokens, to requests that other sites trigger.
    this.refuseCrossSite()
    if (others.length > 0) {
      // An attacker may have set one of them, or the place of the cookie has changed.
      const setCookies = this.#web.cookie.cleared
      throw new StoreError('ONETRIP_SEVERAL_COOKIES', undefined, { setCookies })
    }
    this.#isCookie = true
    return token
  }

  /** The values of all cookies with the name of ours: usually one. */
  #cookies(): string[] {
    return this.#web.cookie.read(this.#request.headers.cookie)
  }

  /** The token of `Authorization: Bearer`; undefined if there is none or the option `bearer` is false. */
  #bearer(): string | undefined {
    const { authorization } = this.#request.headers
    if (!this.#web.bearer || authorization === undefined) return undefined
    if (authorization.slice(0, BEARER.length).toLowerCase() !== BEARER) return undefined
    let start = BEARER.length
    while (authorization[start] === ' ') start++
    return authorization.slice(start)
  }

  /**
   * CSRF protection for a route without a session. `login`, and functions that read the token from the cookie,
   * include it.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE` if a page of another origin sent this state-changing request.
   */
  refuseCrossSite(): void {
    this.#isCrossSite ??= isCrossSite(this.#request, this.#web.origins)
    if (this.#isCrossSite) throw new StoreError('ONETRIP_CROSS_SITE')
  }

  /**
   * As `check`, but returns null if the request has no session: it has no token, or one that is invalid or
   * expired, or the session has ended. One round trip; none without a token.
   *
   * @throws StoreError `ONETRIP_SEVERAL_COOKIES`; `ONETRIP_CROSS_SITE`; if Redis does not answer, the errors of
   *   the store's `checkToken`.
   */
  async find<Asked extends DataOption>(
    options?: Asked,
  ): Promise<MaybeData<Session, Asked, Fields> | null> {
    return await nullIfUnauthorized(this.check(options))
  }

  /** The store's `checkToken`. One round trip. */
  async check<Asked extends DataOption>(
    options?: Asked,
  ): Promise<MaybeData<Session, Asked, Fields>> {
    return this.#found(await this.#store.checkToken(this.token, options))
  }

  /** The store's `touch`. One round trip. */
  async touch(unlessWithinSeconds?: number): Promise<Session> {
    return this.#found(await this.#store.touch(this.token, unlessWithinSeconds))
  }

  /** The store's `watchSession`, for a request that opens a WebSocket. One round trip. */
  async watch(onEnd: () => unknown): Promise<() => void> {
    return await this.#store.watchSession(this.token, onEnd)
  }

  /** The store's `recordView`. One round trip, shared with concurrent requests. */
  async recordView<Asked extends ViewOptions>(
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked, Fields>> {
    return this.#found(await this.#store.recordView(this.token, item, options))
  }

  /**
   * The store's `renewToken`, after a check of the session. For clients with a bearer token: the plugin renews cookies
   * itself. One round trip.
   */
  async renew(): Promise<NewSession> {
    await this.check()
    return this.#store.renewToken(this.token)
  }

  /** The store's `viewedItems`. One round trip. */
  async viewedItems(): Promise<ViewedItem[]> {
    return this.#found(await this.#store.viewedItems(this.token))
  }

  /** The store's `data`. One round trip. */
  async data(): Promise<SessionData<Fields>> {
    return this.#found(await this.#store.data(this.token))
  }

  /** The store's `patch`. One round trip. */
  async patch(fields: DataPatch<Fields>, options?: PatchOptions): Promise<{ version: number }> {
    return this.#found(await this.#store.patch(this.token, fields, options))
  }

  /** Renews the token in the cookie of the request, once a call has shown that the session exists. */
  #found<Result>(result: Result): Result {
    if (!this.#store.renewsTokens || !this.#isCookie || this.#setsCookie) return result
    if (this.#response === undefined || this.#response.isSent()) return result
    try {
      const renewed = this.#store.renewToken(this.token)
      if (renewed.token !== this.token) this.#write(renewed)
    } catch {
      // The token has expired during the call, which has succeeded.
    }
    return result
  }

  #write({ token, expiresAt }: NewSession): void {
    this.#setCookies([this.#web.cookie.write(token, expiresAt)])
  }

  #setCookies(headers: readonly string[]): void {
    this.#setsCookie = true
    for (const header of headers) this.#response?.setCookie(header)
  }

  /**
   * Starts a session for an authenticated user and sets the cookie to its new token. If the request has a
   * session of a guest or of the same user, by cookie or bearer token, the new session takes over its views and data,
   * and the old one ends. Also ends the session of the request's cookie if it is another user's.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE` if a page of another origin sent the request; the
   *   errors of the store's `login`.
   */
  async login(user: string, options?: LoginOptions): Promise<LoggedIn> {
    this.#checkOpen()
    if (options !== undefined) checkType('options', options, 'object')
    // Login CSRF: a page of another origin could log its visitors in to the attacker's session.
    this.refuseCrossSite()
    const cookies = this.#cookies()
    // Of two cookies, an attacker may have set one.
    const only = cookies.length === 1 ? cookies[0] : undefined
    const from = options?.from ?? this.#token ?? this.#bearer() ?? only
    // Always a new token, never the one that the client sent: no session fixation.
    const session = await this.#store.login(user, { ...options, from })
    return { ...(await this.#begin(session)), user }
  }

  /**
   * Starts a session without a user and sets the cookie. A later login takes over its views and data. Ends
   * the session of the request's cookie, and takes over nothing from it.
   *
   * @throws As `login`.
   */
  async loginGuest(): Promise<NewSession> {
    this.#checkOpen()
    this.refuseCrossSite()
    return await this.#begin(await this.#store.loginGuest())
  }

  /** Ends the sessions of the request's cookies, which the browser replaces or removes. */
  async #begin(session: NewSession): Promise<NewSession> {
    // The login does not wait for it. If it fails, the old session ends when it is idle.
    this.#end(this.#cookies()).catch(() => undefined)
    // The caller did not wait for the login.
    if (this.#response?.isSent()) await this.#end([session.token])
    this.#checkOpen()
    this.#token = session.token
    // Always: the browser does not send cookies of other paths.
    this.#setCookies(this.#web.cookie.clearedElsewhere)
    this.#write(session)
    return session
  }

  /**
   * Ends the session of the request and removes its cookie, if it has one. Returns false if there was no
   * session: the request has no token, or one that is invalid or expired, or the session has ended.
   *
   * A bearer token does not end the session of a cookie: a page of another origin could send its own token with the
   * cookie of its visitor.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE`, unless the token is a bearer token; if Redis does not answer, the
   *   errors of the store's `logout`. The cookie then stays, so that the client can retry.
   */
  async logout(): Promise<boolean> {
    this.#checkOpen()
    const bearer = this.#bearer()
    if (bearer === undefined) this.refuseCrossSite()
    const cookies = this.#cookies()
    const token = this.#token ?? bearer
    const ending = token === undefined ? cookies : [token]
    const ended = await this.#end(ending)
    const hasCookie = cookies.some((cookie) => ending.includes(cookie))
    if (hasCookie || this.#setsCookie) this.clearCookie()
    return ended
  }

  /** Ends the sessions of these tokens. Returns whether there was one. */
  async #end(tokens: readonly string[]): Promise<boolean> {
    const given = [...new Set(tokens)].filter((token) => token !== '')
    const ended = await Promise.all(
      given.map((token) => nullIfUnauthorized(this.#store.logout(token))),
    )
    return ended.includes(true)
  }

  /** Removes the cookie. The session continues. */
  clearCookie(): void {
    this.#checkOpen()
    this.#setCookies(this.#web.cookie.cleared)
  }

  /** @throws Error if it is too late to set a cookie. */
  #checkOpen(): void {
    if (this.#response?.isSent() === false) return
    throw new Error(
      'the response can no longer set the session cookie, because it has been sent or hijacked: await login and logout before you send it',
    )
  }
}

/** Returns null instead of an error with status 401: there is no such session. */
async function nullIfUnauthorized<Result>(answer: Promise<Result>): Promise<Result | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StoreError && error.statusCode === 401) return null
    throw error
  }
}
