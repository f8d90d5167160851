import { setTimeout as delay } from 'node:timers/promises'
import { send } from './audit/client.ts'
import type { View, Viewer } from './audit/ledger.ts'
import { sendView, viewerOf } from './audit/views.ts'

export interface Viewing {
  /** Views that have ended, in order of their end. */
  readonly views: readonly View[]
  /**
   * Resolves with the next view that ends and for which `wanted` returns true.
   *
   * @throws Error after 60 seconds without such a view.
   */
  next(wanted: (view: View) => boolean): Promise<View>
  /** Starts no further views. Resolves when all have ended. */
  stop(): Promise<readonly View[]>
}

export interface ViewingOptions {
  /** Called before each view, because a restarted API may have another URL. */
  url: () => string
  viewers: readonly Viewer[]
  /** Number of items; at most as many as a session keeps, so that none is trimmed. Default 20. */
  items?: number
  /** Number of clients. Each sends one view after the other, with a pause. Default 32. */
  concurrency?: number
}

// Without a pause, one test would keep all cores busy. Views still share round trips, because clients whose views end at
// the same time also begin their next views at the same time.
const PAUSE_MS = 30
const MAX_VIEWS = 200_000

/**
 * Logs in `count` users, each once.
 *
 * @throws Error if a login is not acknowledged.
 */
export async function logIn(url: string, count: number): Promise<Viewer[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const user = `viewer-${index}`
      const { body, answer } = await send<{ token: string }>(url, {
        path: '/login',
        body: { user },
      })
      if (!body) throw new Error(`the login of ${user} failed: ${answer}`)
      return viewerOf(user, body.token)
    }),
  )
}

/** Sends views continuously until `stop()`, which rejects if there was an invalid response. */
export function startViewing(options: ViewingOptions): Viewing {
  const { url, viewers, items = 20, concurrency = 32 } = options
  const views: View[] = []
  const waiting = new Set<(view: View) => void>()
  let stopping = false
  let begun = 0

  const loop = async () => {
    while (!stopping && begun < MAX_VIEWS) {
      const number = begun++
      const viewer = viewers[number % viewers.length] as Viewer
      const view = await sendView(
        url(),
        viewer,
        `item-${Math.floor(number / viewers.length) % items}`,
      )
      views.push(view)
      for (const tell of waiting) tell(view)
      await delay(PAUSE_MS)
    }
  }
  const ended = Promise.all(Array.from({ length: concurrency }, loop))
  ended.catch(() => {}) // `stop` reports the error

  return {
    views,
    async next(wanted) {
      const found = Promise.withResolvers<View>()
      const timeout = setTimeout(
        () => found.reject(new Error(`no such view in 60 s; last answers: ${lastAnswers(views)}`)),
        60_000,
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
