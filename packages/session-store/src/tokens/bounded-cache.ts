/**
 * A map that forgets the entries that were not used lately, at the cost of a `Map`: two generations, and
 * when the newer one is full, it replaces the older one.
 *
 * An entry stays at least as long as fewer than `size` other ones are used.
 */
export class BoundedCache<Key, Value> {
  readonly #size: number
  #newer = new Map<Key, Value>()
  #older = new Map<Key, Value>()

  /** @param size Entries of a generation: there are never more than twice as many. */
  constructor(size: number) {
    this.#size = size
  }

  get(key: Key): Value | undefined {
    const value = this.#newer.get(key)
    if (value !== undefined) return value
    const older = this.#older.get(key)
    if (older !== undefined) this.set(key, older)
    return older
  }

  set(key: Key, value: Value): void {
    if (this.#newer.size >= this.#size) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(key, value)
  }
}
