import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

// What every application of the suite does over HTTP, however it keeps its sessions:
//
//   POST /login { user }            starts a session: its cookie
//   POST /guest { field, value }    starts a session without a user, or 501
//   GET  /me                        { user, fields }, or 401
//   POST /set { field, value }      changes one field of the session, or 501
//   POST /increment { field }       adds 1 to a field, with the means that the store has, or 501
//   POST /regenerate                a new id for the same session, or 501
//   POST /logout                    ends the session
//   GET  /sessions                  { count } of the user's sessions, or 501
//   POST /end-all                   ends all sessions of the user, or 501
//
// The header `hold: NAME` makes a request wait between loading its session and acting on it, until the case lets it go on.

/** Ways of an application to keep its sessions. */
export interface Contender {
  /** A row of the table. */
  readonly name: string
  /** Starts the application on 127.0.0.1. */
  start(options: { redisPort: number; secrets: readonly string[] }): Promise<Application>
}

export interface Application {
  readonly url: string
  /** Makes all sessions expire now, as time would. */
  expire(): Promise<void>
  close(): Promise<void>
}

interface Held {
  arrived: PromiseWithResolvers<void>
  go: PromiseWithResolvers<void>
}
const held = new Map<string, Held>()

/** Announces a request that will wait. `arrived`: it has loaded its session. Several may wait for the same name. */
export function hold(name: string) {
  const one = { arrived: Promise.withResolvers<void>(), go: Promise.withResolvers<void>() }
  held.set(name, one)
  return { arrived: one.arrived.promise, release: one.go.resolve }
}

/** Waits if the case holds requests of this name. An application calls it after it has loaded the session. */
export async function pass(name: string | string[] | undefined): Promise<void> {
  const one = held.get(`${name}`)
  one?.arrived.resolve()
  await one?.go.promise
}

/** Serves on a free port. */
export async function listen(listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

export interface Answer {
  /** 0: no answer within the time. */
  status: number
  body: Record<string, unknown>
}

/** A browser with its own cookies. */
export class Browser {
  readonly #url: string
  readonly cookies = new Map<string, string>()

  constructor({ url }: { url: string }) {
    this.#url = url
  }

  /** A browser with the same cookies, such as a thief's. @param app another application, with the same cookies. */
  copy(app: { url: string } = { url: this.#url }): Browser {
    const copy = new Browser(app)
    for (const [name, value] of this.cookies) copy.cookies.set(name, value)
    return copy
  }

  /** @param holding the name of the hold at which the request waits. */
  async send(path: string, body?: object, holding?: string, withinMs = 8_000): Promise<Answer> {
    const reads = ['/me', '/sessions'].includes(path)
    const headers = {
      cookie: [...this.cookies].map((pair) => pair.join('=')).join('; '),
      ...(!reads && { 'content-type': 'application/json' }),
      ...(holding && { hold: holding }),
    }
    const response = await fetch(this.#url + path, {
      ...(reads ? { headers } : { method: 'POST', headers, body: JSON.stringify(body ?? {}) }),
      signal: AbortSignal.timeout(withinMs),
    }).catch(() => null)
    if (response === null) return { status: 0, body: {} }
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '' || /max-age=0|1970/i.test(cookie)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text().catch(() => '')
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : {} }
  }

  /** The user, or null after a 401. Any other status is an error of the case. */
  async user(): Promise<string | null> {
    const { status, body } = await this.send('/me')
    if (status === 401) return null
    if (status !== 200) throw new Error(`GET /me: ${status}`)
    return `${body.user}`
  }

  async field(name: string): Promise<unknown> {
    const { body } = await this.send('/me')
    return (body.fields as Record<string, unknown> | undefined)?.[name]
  }
}
