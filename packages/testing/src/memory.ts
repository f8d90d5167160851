export class Hash extends Map<string, string> {}
export class SortedSet extends Map<string, number> {}

interface Subscriber {
  readonly channels: readonly string[]
  onMessage(message: string): void
  close(): void
}

/** An error that Redis would reply. */
export const refused = (message: string) =>
  Object.assign(new Error(message), { name: 'ReplyError' })

const wrongType = () => refused('WRONGTYPE Operation against a key holding the wrong kind of value')

/** A list of name, value, name … as pairs. */
export const pairsOf = (flat: readonly string[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    String(flat[2 * index + 1]),
  ])

/** Redis's data model in memory. As in Redis, an empty hash or sorted set does not exist. */
export class Memory {
  readonly subscribers = new Set<Subscriber>()
  readonly #now: () => number
  readonly #values = new Map<string, string | Hash | SortedSet>()
  readonly #expiries = new Map<string, number>()

  /** @param now Milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now
  }

  get now(): number {
    return this.#now()
  }

  at(key: string) {
    const value = this.#values.get(key)
    const isEmpty = value instanceof Map && value.size === 0
    if (isEmpty || this.now >= this.expiryOf(key)) this.#remove(key)
    return this.#values.get(key)
  }

  keys(): string[] {
    return [...this.#values.keys()].filter((key) => this.at(key) !== undefined)
  }

  text(key: string): string | undefined {
    const value = this.at(key)
    if (value instanceof Map) throw wrongType()
    return value
  }

  hash(key: string): Hash {
    return this.#find(key, Hash)
  }

  sorted(key: string): SortedSet {
    return this.#find(key, SortedSet)
  }

  #find<Kind extends Hash | SortedSet>(key: string, kind: new () => Kind): Kind {
    const value = this.at(key) ?? new kind()
    if (!(value instanceof kind)) throw wrongType()
    this.#values.set(key, value)
    return value
  }

  /** Stores a text. Without `lifetimeMs`, it keeps the expiry. */
  put(key: string, text: string, lifetimeMs?: number): void {
    this.#values.set(key, text)
    if (lifetimeMs !== undefined) this.expire(key, lifetimeMs)
  }

  expire(key: string, ms: number): void {
    this.#expiries.set(key, this.now + ms)
  }

  /** Milliseconds since 1970. */
  expiryOf(key: string): number {
    return this.#expiries.get(key) ?? Number.POSITIVE_INFINITY
  }

  #remove(key: string): boolean {
    this.#expiries.delete(key)
    return this.#values.delete(key)
  }

  /** Returns the number of keys that existed. */
  remove(...keys: string[]): number {
    return keys.filter((key) => this.at(key) !== undefined && this.#remove(key)).length
  }

  /** Returns the new score. */
  increment(key: string, member: string, by: number): number {
    const scores = this.sorted(key)
    const score = (scores.get(member) ?? 0) + by
    scores.set(member, score)
    return score
  }

  /** The members with their scores, lowest first. */
  ranked(key: string): [member: string, score: number][] {
    return [...this.sorted(key)].sort(
      ([one, score], [other, otherScore]) =>
        score - otherScore || Buffer.compare(Buffer.from(one), Buffer.from(other)),
    )
  }

  publish(channel: string, message: string): number {
    const told = [...this.subscribers].filter(({ channels }) => channels.includes(channel))
    for (const { onMessage } of told) onMessage(message)
    return told.length
  }
}
