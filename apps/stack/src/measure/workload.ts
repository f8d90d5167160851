const MODULUS = 2 ** 31 - 1

export const MAX_SEED = MODULUS - 1

/**
 * A generator of numbers from 0 (included) to 1 (excluded), the same ones for the same seed: the "minimal
 * standard" of Park and Miller, with their later multiplier 48271.
 */
export function seededRandom(seed: number): () => number {
  let state = seed % MODULUS || 1
  return () => {
    state = (state * 48_271) % MODULUS
    return (state - 1) / (MODULUS - 1)
  }
}

/**
 * Draws from `count` items, the n-th with a weight of 1/n (Zipf's law): as in a shop, few items get
 * most of the views.
 */
export function skewedItems(
  count: number,
  random: () => number,
  prefix = 'load-item-',
): () => string {
  let sum = 0
  const upTo = Array.from({ length: count }, (_, index) => {
    sum += 1 / (index + 1)
    return sum
  })
  return () => {
    const point = random() * sum
    let low = 0
    let high = count - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((upTo[middle] ?? sum) > point) high = middle
      else low = middle + 1
    }
    return `${prefix}${low + 1}`
  }
}

/** One request, as any generator can send it; JSON as the body, null where there is none. */
export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  path: string
  headers: Record<string, string>
  body: string | null
}

export interface WorkloadOptions {
  /** Of the sessions. */
  tokens: readonly string[]
  connections: number
  items: number
  /** What their names begin with. Default `load-item-`. */
  itemPrefix?: string
  /** Share of the requests, 0 to 1, that read; all others are `POST /views`. Default 0. */
  reads?: number
  seed: number
  /** About how many requests are prepared, to be sent over and over. Default 20,000. */
  prepared?: number
}

/** A request without an answer counts as a timeout after so many seconds. */
export const TIMEOUT_S = 10

/** What a page shows besides the item: each is a third of the reads. The last needs no session. */
const readPaths = ['/me', '/me/views', '/items/popular']

/**
 * What each connection sends, over and over: a list per connection. A connection has sessions of its
 * own, unless there are fewer sessions than connections.
 */
export function workload(options: WorkloadOptions): Call[][] {
  const { tokens, connections, items, itemPrefix, reads = 0, seed, prepared = 20_000 } = options
  const nextItem = skewedItems(items, seededRandom(seed), itemPrefix)
  const random = seededRandom(seed + 1) // separate: the views are the same whatever is read
  // To generate them during a run would cost more than to send them.
  const length = Math.min(1_000, Math.max(20, Math.ceil(prepared / connections)))
  const call = (token = ''): Call => {
    const authorization = `Bearer ${token}`
    if (random() >= reads) {
      const headers = { authorization, 'content-type': 'application/json' }
      return { method: 'POST', path: '/views', headers, body: JSON.stringify({ item: nextItem() }) }
    }
    const path = readPaths[Math.floor(random() * readPaths.length)] ?? '/me'
    const headers: Call['headers'] = path.startsWith('/me') ? { authorization } : {}
    return { method: 'GET', path, headers, body: null }
  }
  return Array.from({ length: connections }, (_, connection) => {
    const own = tokens.filter((_, index) => index % connections === connection)
    const used = own.length > 0 ? own : tokens.slice(connection % tokens.length).slice(0, 1)
    return Array.from({ length: Math.max(length, used.length) }, (_, index) =>
      call(used[index % used.length]),
    )
  })
}
