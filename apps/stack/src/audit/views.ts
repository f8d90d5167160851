import { setTimeout as delay } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { send } from './client.ts'
import type { View, Viewer } from './ledger.ts'

export interface Viewing {
  /** Those that have ended, in the order of their ending. */
  readonly views: readonly View[]
  /**
   * Resolves with the first view, of those that end from now on, that is one of these.
   *
   * @throws Error after 30 seconds without one.
   */
  next(wanted: (view: View) => boolean): Promise<View>
  /** Begins no more of them, and resolves when all have ended. */
  stop(): Promise<readonly View[]>
}

export interface ViewingOptions {
  /** Asked before each view, since an API that is started again may be elsewhere. */
  url: () => string
  viewers: readonly Viewer[]
  /** Not more than a session keeps, so that none is trimmed away. Default 20. */
  items?: number
  /** Views at the same time. Default 32. */
  concurrency?: number
}

// A client that is refused comes again, but not at once.
const PAUSE_AFTER_FAILURE_MS = 20
const MOST_VIEWS = 200_000

/**
 * Logs `count` users in, each once.
 *
 * @throws Error when one of the logins is not acknowledged.
 */
export async function logIn(url: string, count: number): Promise<Viewer[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const user = `viewer-${index}`
      const { body, answer } = await send<{ token: string }>(url, {
        path: '/login',
        body: { user },
      })
      if (!body) throw new Error(`the login of ${user} was answered with ${answer}`)
      return viewerOf(user, body.token)
    }),
  )
}

/** The session of a token. */
export const viewerOf = (user: string, token: string): Viewer => {
  return { user, token, id: token.slice(0, token.indexOf('.')) }
}

/** Sends views without pause, until it is told to stop. An answer that must not be rejects `stop`. */
export function startViewing(options: ViewingOptions): Viewing {
  const { url, viewers, items = 20, concurrency = 32 } = options
  const views: View[] = []
  const waiting = new Set<(view: View) => void>()
  let stopping = false
  let begun = 0

  const loop = async () => {
    while (!stopping && begun < MOST_VIEWS) {
      const number = begun++
      const viewer = viewers[number % viewers.length] as Viewer
      const view = await sendView(
        url(),
        viewer,
        `item-${Math.floor(number / viewers.length) % items}`,
      )
      views.push(view)
      for (const tell of waiting) tell(view)
      if (view.outcome !== 'acknowledged') await delay(PAUSE_AFTER_FAILURE_MS)
    }
  }
  const ended = Promise.all(Array.from({ length: concurrency }, loop))
  ended.catch(() => {}) // `stop` tells

  return {
    views,
    async next(wanted) {
      const found = Promise.withResolvers<View>()
      const timeout = setTimeout(
        () => found.reject(new Error(`no such view in 30 s; the last: ${lastAnswers(views)}`)),
        30_000,
      )
      const tell = (view: View) => {
        if (wanted(view)) found.resolve(view)
      }
      waiting.add(tell)
      try {
        return await Promise.race([found.promise, ended.then(() => found.promise)])
      } finally {
        clearTimeout(timeout)
        waiting.delete(tell)
      }
    },
    async stop() {
      stopping = true
      await ended
      return views
    },
  }
}

const lastAnswers = (views: readonly View[]) =>
  views
    .slice(-5)
    .map(({ answer }) => answer)
    .join(', ')

/**
 * Sends one view.
 *
 * @throws Error when the response is that of another view, and as `send`.
 */
export async function sendView(
  url: string,
  viewer: Viewer,
  item: string,
  dispatcher?: Dispatcher,
): Promise<View> {
  const { user, token } = viewer
  const call = { path: '/views', token, body: { item } }
  const { body, ...answer } = await send<{ user?: string; item?: string }>(url, call, dispatcher)
  // The replies of concurrent views must not be mixed up.
  if (body && (body.user !== user || body.item !== item)) {
    throw new Error(`${user} viewed ${item} and was told ${JSON.stringify(body)}`)
  }
  return { viewer, item, ...answer }
}
