import { StoreError } from '../errors.ts'
import { checkObject } from '../input.ts'
import type {
  DataOption,
  DataPatch,
  DeclaredFields,
  MaybeData,
  PatchOptions,
  SessionData,
} from '../operations/data.ts'
import type { Session } from '../operations/sessions.ts'
import type { RecordedView, ViewedItem } from '../operations/views.ts'
import type { LoginOptions, ViewOptions } from '../options.ts'
import type { NewSession } from '../store.ts'
import { isCrossSite, type WebRequest } from './cross-site.ts'
import type { Web } from './options.ts'

/**
 * The session of one request. It reads and sends nothing until you use a property or function.
 *
 * `Fields`: the types of the data fields. Default: `SessionDataFields`, which you declare.
 */
export interface RequestSession<Fields extends object = DeclaredFields> {
  /**
   * The token of the request, from `Authorization: Bearer` or the cookie. The store verifies it.
   *
   * @throws StoreError `ONETRIP_LOGIN_REQUIRED` if there is none; `ONETRIP_SEVERAL_COOKIES`; for a token in a
   *   cookie, `ONETRIP_CROSS_SITE`. All functions below throw these, too.
   */
  readonly token: string
  /**
   * As `check`, but returns null if the request has no session: it has no token, or one that is invalid or
   * expired, or the session has ended. One round trip; none without a token.
   *
   * @throws StoreError `ONETRIP_SEVERAL_COOKIES`; `ONETRIP_CROSS_SITE`; if Redis does not answer, the errors of
   *   the store's `checkToken`.
   */
  find<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked, Fields> | null>
  /** The store's `checkToken`. One round trip. */
  check<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked, Fields>>
  /** The store's `touch`. One round trip. */
  touch(unlessWithinSeconds?: number): Promise<Session>
  /** The store's `watchSession`, for a request that opens a WebSocket. One round trip. */
  watch(onEnd: () => unknown): Promise<() => void>
  /** The store's `recordView`. One round trip, shared with concurrent requests. */
  recordView<Asked extends ViewOptions>(
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked, Fields>>
  /**
   * The store's `renewToken`, after a check of the session. For clients with a bearer token: the plugin renews cookies
   * itself. One round trip.
   */
  renew(): Promise<NewSession>
  /** The store's `viewedItems`. One round trip. */
  viewedItems(): Promise<ViewedItem[]>
  /** The store's `data`. One round trip. */
  data(): Promise<SessionData<Fields>>
  /** The store's `patch`. One round trip. */
  patch(fields: DataPatch<Fields>, options?: PatchOptions): Promise<{ version: number }>
  /**
   * CSRF protection for a route without a session. `login`, and functions that read the token from the cookie,
   * include it.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE` if a page of another origin sent this state-changing request.
   */
  refuseCrossSite(): void
}

export interface LoggedIn extends NewSession {
  user: string
}

/** The response to a request, in either framework. */
export interface WebResponse {
  /** Whether it is too late to set a cookie. */
  readonly sent: boolean
  setCookie(header: string): void
}

const BEARER = /^bearer +/i

/** Implements the session of one request, and login and logout for both frameworks. */
export class WebSession implements RequestSession {
  readonly #web: Web
  readonly #request: WebRequest
  #token: string | undefined
  #isCookie = false
  /** Whether the response sets or removes the cookie. */
  #setsCookie = false
  #renewOn: WebResponse | undefined
  #isCrossSite: boolean | undefined

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

  /** Lets the response set a renewed cookie, once a call has shown that the session exists. */
  renewOn(response: WebResponse): void {
    this.#renewOn = response
  }

  #found<Result>(result: Result): Result {
    const response = this.#renewOn
    if (!response || !this.#isCookie || this.#setsCookie || response.sent) return result
    const { store, cookie } = this.#web
    let renewed: NewSession
    try {
      renewed = store.renewToken(this.token)
    } catch {
      return result // The token has expired during the call, which has succeeded.
    }
    if (renewed.token === this.token) return result
    this.#setsCookie = true
    response.setCookie(cookie.write(renewed.token, renewed.expiresAt))
    return result
  }

  /** The values of all cookies with the name of ours: usually one. */
  #cookies(): string[] {
    return this.#web.cookie.read(this.#request.headers.cookie)
  }

  /** The token of `Authorization: Bearer`; undefined if there is none or the option `bearer` is false. */
  #bearer(): string | undefined {
    const { authorization } = this.#request.headers
    if (authorization === undefined || !this.#web.bearer) return undefined
    const scheme = BEARER.exec(authorization)
    return scheme ? authorization.slice(scheme[0].length) : undefined
  }

  refuseCrossSite(): void {
    this.#isCrossSite ??= isCrossSite(this.#request, this.#web.origins)
    if (this.#isCrossSite) throw new StoreError('ONETRIP_CROSS_SITE')
  }

  async check<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked>> {
    return this.#found(await this.#web.store.checkToken(this.token, options))
  }

  async find<Asked extends DataOption>(options?: Asked): Promise<MaybeData<Session, Asked> | null> {
    return await nullIfUnauthorized(this.check(options))
  }

  async touch(unlessWithinSeconds?: number): Promise<Session> {
    return this.#found(await this.#web.store.touch(this.token, unlessWithinSeconds))
  }

  async watch(onEnd: () => unknown): Promise<() => void> {
    return await this.#web.store.watchSession(this.token, onEnd)
  }

  async recordView<Asked extends ViewOptions>(
    item: string,
    options?: Asked,
  ): Promise<MaybeData<RecordedView, Asked>> {
    return this.#found(await this.#web.store.recordView(this.token, item, options))
  }

  async viewedItems(): Promise<ViewedItem[]> {
    return this.#found(await this.#web.store.viewedItems(this.token))
  }

  async renew(): Promise<NewSession> {
    await this.check()
    return this.#web.store.renewToken(this.token)
  }

  async data(): Promise<SessionData> {
    return this.#found(await this.#web.store.data(this.token))
  }

  async patch(fields: DataPatch, options?: PatchOptions): Promise<{ version: number }> {
    return this.#found(await this.#web.store.patch(this.token, fields, options))
  }

  /** Starts a session with a new token, which may take over that of the request. Ends the cookie's. */
  async login(
    user: string,
    options: LoginOptions | undefined,
    response: WebResponse,
  ): Promise<LoggedIn> {
    checkOpen(response)
    if (options !== undefined) checkObject('options', options)
    // Login CSRF: a page of another origin could log its visitors in to the attacker's session.
    this.refuseCrossSite()
    const cookies = this.#cookies()
    // Of two cookies, an attacker may have set one.
    const only = cookies.length === 1 ? cookies[0] : undefined
    const from = options?.from ?? this.#token ?? this.#bearer() ?? only
    // Always a new token, never the one that the client sent: no session fixation.
    const session = await this.#web.store.login(user, { ...options, from })
    return { ...(await this.#begin(session, cookies, response)), user }
  }

  /** Starts a session without a user. Ends the cookie's. */
  async loginGuest(response: WebResponse): Promise<NewSession> {
    checkOpen(response)
    this.refuseCrossSite()
    return await this.#begin(await this.#web.store.loginGuest(), this.#cookies(), response)
  }

  /** @param replaced Cookies of the request. The browser replaces or removes them, so their sessions end. */
  async #begin(
    session: NewSession,
    replaced: readonly string[],
    response: WebResponse,
  ): Promise<NewSession> {
    const { cookie } = this.#web
    // The login does not wait for it. If it fails, the old session ends when it is idle.
    this.#end(replaced).catch(() => undefined)
    // The caller did not wait for the login.
    if (response.sent) await this.#end([session.token])
    checkOpen(response)
    this.#token = session.token
    this.#setsCookie = true
    // Always: the browser does not send cookies of other paths.
    for (const header of cookie.clearedElsewhere) response.setCookie(header)
    response.setCookie(cookie.write(session.token, session.expiresAt))
    return session
  }

  /**
   * Ends the session of the bearer token, or else the sessions of the cookies, and removes their cookies. Keeps the
   * cookies if a session may still exist, so that the client can retry. A bearer token does not end the session of a
   * cookie: a page of another origin could send its own token with the cookie of its visitor.
   */
  async logout(response: WebResponse): Promise<boolean> {
    checkOpen(response)
    const bearer = this.#bearer()
    if (bearer === undefined) this.refuseCrossSite()
    const cookies = this.#cookies()
    const token = this.#token ?? bearer
    const ending = token === undefined ? cookies : [token]
    const ended = await this.#end(ending)
    const hasCookie = cookies.some((cookie) => ending.includes(cookie))
    if (hasCookie || this.#setsCookie) this.clearCookie(response)
    return ended
  }

  /** Ends the sessions of these tokens. Returns whether there was one. */
  async #end(tokens: readonly string[]): Promise<boolean> {
    const { store } = this.#web
    const given = [...new Set(tokens)].filter((token) => token !== '')
    const ended = await Promise.all(given.map((token) => nullIfUnauthorized(store.logout(token))))
    return ended.includes(true)
  }

  clearCookie(response: WebResponse): void {
    checkOpen(response)
    this.#setsCookie = true
    for (const header of this.#web.cookie.cleared) response.setCookie(header)
  }
}

/** @throws Error if it is too late to set a cookie. */
function checkOpen({ sent }: WebResponse): void {
  if (!sent) return
  throw new Error(
    'the response can no longer set the session cookie, because it has been sent or hijacked: await login and logout before you send it',
  )
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
