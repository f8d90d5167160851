import { setTimeout as delay } from 'node:timers/promises'

/** A session of the load, and the items that its views name. */
export interface Viewer {
  readonly user: string
  readonly token: string
  /** What Redis knows the session by. */
  readonly id: string
}

/** What the client knows about a view: it was counted, it was not, or neither of them for certain. */
type Outcome = 'acknowledged' | 'unknown' | 'not written'

export interface View {
  readonly viewer: Viewer
  readonly item: string
  readonly outcome: Outcome
  /** `200`, the code of the error, or that of the broken connection. */
  readonly answer: string
  readonly milliseconds: number
}

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

interface Answer {
  user?: string
  item?: string
  code?: string
  mayHaveWritten?: boolean
  retrySafe?: boolean
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

/** Logs `count` users in, each once. */
export async function logIn(url: string, count: number): Promise<Viewer[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const user = `viewer-${index}`
      const answer = await fetch(`${url}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ user }),
      })
      const { token } = (await answer.json()) as { token: string }
      return { user, token, id: token.slice(0, token.indexOf('.')) }
    }),
  )
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
      const view = await send(url(), viewer, `item-${Math.floor(number / viewers.length) % items}`)
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

async function send(url: string, viewer: Viewer, item: string): Promise<View> {
  const begin = performance.now()
  const view = (outcome: Outcome, answer: string): View => {
    return { viewer, item, outcome, answer, milliseconds: performance.now() - begin }
  }
  let response: Response
  let body: Answer
  try {
    response = await fetch(`${url}/views`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${viewer.token}`,
      },
      body: JSON.stringify({ item }),
    })
    body = (await response.json()) as Answer
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } }
    // Only what never left this process is certain not to have been written.
    const answer = cause?.code ?? String(error)
    return view(answer === 'ECONNREFUSED' ? 'not written' : 'unknown', answer)
  }
  if (response.status === 200) {
    // The replies of concurrent views must not be mixed up.
    if (body.user !== viewer.user || body.item !== item) {
      throw new Error(`${viewer.user} viewed ${item} and was told ${JSON.stringify(body)}`)
    }
    return view('acknowledged', '200')
  }
  const { code = '', mayHaveWritten, retrySafe } = body
  if (
    response.status !== 503 ||
    typeof mayHaveWritten !== 'boolean' ||
    typeof retrySafe !== 'boolean' ||
    !response.headers.has('retry-after')
  ) {
    throw new Error(`a view was answered with ${response.status}: ${JSON.stringify(body)}`)
  }
  return view(mayHaveWritten ? 'unknown' : 'not written', code)
}
