const MODULUS = 2 ** 31 - 1

export const MAX_SEED = MODULUS - 1

/**
 * Returns a generator of random numbers from 0 (inclusive) to 1 (exclusive), the same for the same seed: the
 * "minimal standard" of Park and Miller, with their later multiplier 48271.
 */
export function seededRandom(seed: number): () => number {
  let state = seed % MODULUS || 1
  return () => {
    state = (state * 48_271) % MODULUS
    return (state - 1) / (MODULUS - 1)
  }
}

/** The name of an item. Indexes start at 0, names at 1. */
export const itemName = (index: number, prefix = 'load-item-') => `${prefix}${index + 1}`

/**
 * Returns a function that draws from `count` items; the n-th has a weight of 1/n (Zipf's law): as in a shop, few
 * items get most of the views.
 */
export function skewedItems(count: number, random: () => number, prefix?: string): () => string {
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
    return itemName(low, prefix)
  }
}

/** One request, for any load generator. `body` is JSON, or null without a body. */
export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  path: string
  headers: Record<string, string>
  body: string | null
}

/** Paths of read requests: the other data of a page. The last one needs no session. */
const READS = ['/me', '/me/views', '/items/popular']

export interface WorkloadOptions {
  /** Tokens of sessions. */
  tokens: readonly string[]
  connections: number
  items: number
  /** Prefix of item names. Default `load-item-`. */
  itemPrefix?: string
  /** Share of read requests, 0 to 1. Default 0. */
  reads?: number
  seed: number
  /** Approximate number of prepared requests, which are sent repeatedly. Default 20,000. */
  prepared?: number
}

/** Request timeout in seconds. */
export const TIMEOUT_S = 10

/**
 * The requests of each connection, which are sent repeatedly. Each connection has its own sessions, unless there
 * are fewer sessions than connections.
 */
export function workload(options: WorkloadOptions): Call[][] {
  const { tokens, connections, items, itemPrefix, reads = 0, seed, prepared = 20_000 } = options
  const nextItem = skewedItems(items, seededRandom(seed), itemPrefix)
  const random = seededRandom(seed + 1) // separate, so that the views do not depend on the reads
  // Prepared before the run, because generating a request costs more than sending it.
  const length = Math.min(1_000, Math.max(20, Math.ceil(prepared / connections)))
  const call = (token = ''): Call => {
    const authorization = `Bearer ${token}`
    if (random() >= reads) {
      const headers = { authorization, 'content-type': 'application/json' }
      const body = JSON.stringify({ item: nextItem() })
      return { method: 'POST', path: '/views', headers, body }
    }
    const path = READS[Math.floor(random() * READS.length)] ?? '/me'
    const headers: Call['headers'] = path === '/items/popular' ? {} : { authorization }
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
