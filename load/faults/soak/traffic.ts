import { latencyHistogram, record } from '@onetrip/stack/measure/latencies.ts'
import { seededRandom } from '@onetrip/stack/measure/workload.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import { type Answer, type Call, send } from '@onetrip/stack/testing/audit/client.ts'
import { Ledger, type View, type Viewer } from '@onetrip/stack/testing/audit/ledger.ts'
import { sendView, viewerOf } from '@onetrip/stack/testing/audit/views.ts'
import { until } from '@onetrip/stack/until.ts'
import { Agent } from 'undici'

export interface TrafficOptions {
  /** The addresses of the APIs, which take turns. */
  urls: readonly string[]
  /** Requests per second. */
  rate: number
  /** Users, each with one session or none. */
  sessions: number
  seed: number
}

interface Session {
  readonly viewer: Viewer
  /** The last value that was sent for the field `step`. */
  step: number
  /** The possible values of the field `step` in Redis. */
  readonly steps: Set<number>
}

/** A user with at most one request in flight. */
interface User {
  readonly name: string
  /** Fewer items than a session keeps, so that none is trimmed. */
  readonly items: readonly string[]
  session: Session | undefined
}

const TICK_MS = 10
const CONNECTIONS = 16
const ITEMS_EACH = 20
const ITEM_GROUPS = 25
const REQUEST_TIMEOUT_MS = 10_000
const BACK_WITHIN_MS = 10_000

// The actions of a logged-in user, as shares of the requests.
const shares = { view: 0.62, read: 0.27, patch: 0.08, logout: 0.03 } as const
type Action = keyof typeof shares

const reads = ['/me', '/me/views', '/me/sessions', '/me/data', '/items/popular']

export type Traffic = ReturnType<typeof startTraffic>

/**
 * Sends logins, views, reads, changes of session data and logouts at a fixed rate, until `stop`. A request that is
 * due while all users wait for an answer is counted as not sent.
 */
export function startTraffic({ urls, rate, sessions, seed }: TrafficOptions) {
  const random = seededRandom(seed)
  const agent = new Agent({
    connections: CONNECTIONS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    bodyTimeout: REQUEST_TIMEOUT_MS,
  })
  const ledger = new Ledger()
  const latencies = latencyHistogram()
  const counts = {
    requests: 0,
    notSent: 0,
    acknowledged: 0,
    unknown: 0,
    notWritten: 0,
  }
  const errors: Record<string, number> = {}
  const unexpected: string[] = []
  const waiting = new Set<() => void>()
  const inFlight = new Set<Promise<void>>()
  const startedAt = performance.now()
  let [lastViewAt, longestGapMs] = [startedAt, 0]

  const users = Array.from({ length: sessions }, (_, index): User => {
    const group = index % ITEM_GROUPS
    const items = Array.from({ length: ITEMS_EACH }, (_, item) => `soak-${group}-${item}`)
    return { name: `soak-${index}`, items, session: undefined }
  })
  const free = [...users]

  let turn = 0
  const next = () => urls[turn++ % urls.length] as string
  const call = async <Body>(call: Call): Promise<Answer<Body>> =>
    counted(await send<Body>(next(), call, agent))

  function counted<One extends Pick<View, 'outcome' | 'milliseconds'>>(answer: One): One {
    if (answer.outcome === 'acknowledged') record(latencies, answer.milliseconds)
    return answer
  }

  async function login(user: User): Promise<void> {
    const body = { user: user.name }
    const answer = await call<{ token: string }>({ path: '/login', body })
    if (answer.outcome === 'unknown') ledger.uncertain += 1
    if (!answer.body) return
    const viewer = viewerOf(user.name, answer.body.token)
    user.session = { viewer, step: 0, steps: new Set([0]) }
    ledger.begin(viewer)
  }

  const pick = <One>(list: readonly One[]) => list[Math.floor(random() * list.length)] as One

  const actions: Readonly<Record<Action, (session: Session, user: User) => Promise<void>>> = {
    async view({ viewer }, user) {
      const view = counted(await sendView(next(), viewer, pick(user.items), agent))
      ledger.record(view)
      counts[view.outcome === 'not written' ? 'notWritten' : view.outcome] += 1
      if (view.outcome !== 'acknowledged') return
      longestGapMs = Math.max(longestGapMs, performance.now() - lastViewAt)
      lastViewAt = performance.now()
      for (const resolve of waiting) resolve()
    },
    async read({ viewer: { token } }) {
      await call({ method: 'GET', path: pick(reads), token })
    },
    async patch(session) {
      const step = ++session.step
      const { token } = session.viewer
      const { outcome } = await call({ method: 'PATCH', path: '/me/data', token, body: { step } })
      if (outcome === 'acknowledged') session.steps.clear()
      if (outcome !== 'not written') session.steps.add(step)
    },
    async logout({ viewer }, user) {
      const { outcome } = await call({ path: '/logout', token: viewer.token })
      ledger.end(viewer, outcome)
      if (outcome !== 'not written') user.session = undefined
    },
  }

  function nextAction(): Action {
    let point = random()
    for (const [action, share] of Object.entries(shares)) {
      point -= share
      if (point < 0) return action as Action
    }
    return 'view'
  }

  async function act(user: User): Promise<void> {
    counts.requests += 1
    try {
      if (user.session) await actions[nextAction()](user.session, user)
      else await login(user)
    } catch (error) {
      // An unexpected answer. The audit still expects the session.
      const message = messageOf(error)
      const [kind = ''] = message.split(': ', 1)
      if (errors[kind] === undefined) unexpected.push(message)
      errors[kind] = (errors[kind] ?? 0) + 1
      user.session = undefined
    }
    free.push(user)
  }

  let issued = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * rate) / 1_000)
    for (; issued < due; issued++) {
      const user = free.shift()
      if (!user) {
        counts.notSent += 1
        continue
      }
      const acting = act(user)
      inFlight.add(acting)
      void acting.finally(() => inFlight.delete(acting))
    }
  }, TICK_MS)

  return {
    counts: counts as Readonly<typeof counts>,
    /** Unexpected answers by kind. */
    errors,
    /** The full message of the first answer of each kind. */
    unexpected: unexpected as readonly string[],
    ledger,
    latencies,
    seconds: () => (performance.now() - startedAt) / 1_000,
    /** The longest time without an acknowledged view since the last call, in milliseconds. */
    takeLongestGap(): number {
      const gap = Math.max(longestGapMs, performance.now() - lastViewAt)
      longestGapMs = 0
      return gap
    },
    /** Resolves with true after the next acknowledged view, or with false after `timeoutMs` or an abort. */
    nextView(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const found = () => resolve(true)
      const over = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      if (over.aborted) resolve(false)
      over.addEventListener('abort', () => resolve(false), { once: true })
      waiting.add(found)
      return promise.finally(() => waiting.delete(found))
    },
    /** Sends no further requests. Resolves when all requests are complete. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await Promise.all(inFlight)
    },
    /** Checks the data of all sessions and returns the discrepancies. Closes the connections. */
    async checkData(): Promise<string[]> {
      const found: string[] = []
      for (const { session } of users) {
        if (session) found.push(...(await dataDiscrepancies(session)))
      }
      await agent.destroy()
      return found
    },
  }

  async function dataDiscrepancies({ viewer, steps }: Session): Promise<string[]> {
    const { token, user } = viewer
    const call = { method: 'GET', path: '/me/data', token } as const
    let answer: Answer<{ fields: { step?: number } }> | undefined
    try {
      // After an interrupt, the API may still be reconnecting to Redis.
      const isAnswered = async () => {
        answer = await send(next(), call, agent)
        return answer.outcome === 'acknowledged'
      }
      await until(isAnswered, { timeoutMs: BACK_WITHIN_MS })
    } catch (error) {
      return [`data of ${user}: ${messageOf(error)}`]
    }
    if (!answer?.body) return [`data of ${user}: ${answer?.answer}`]
    const { step = 0 } = answer.body.fields
    return steps.has(step)
      ? []
      : [`data of ${user}: step ${step}, expected ${[...steps].join(' or ')}`]
  }
}
