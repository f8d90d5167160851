import { createRequire, syncBuiltinESMExports } from 'node:module'
import FakeTimers from '@sinonjs/fake-timers'

/** Random numbers from a seed: the same seed gives the same sequence. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 or more, less than 1. Mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  /** Mostly short times, sometimes long ones. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }
}

const realImmediate = setImmediate
const crypto = createRequire(import.meta.url)('node:crypto')

/** The moment at which every simulation begins. */
const START = Date.UTC(2026, 0, 1)

/**
 * Runs `body` with a virtual clock: timers of the whole process fire only in `sleep` and `until`, and random ids come
 * from the seed. Nothing else may run in the process meanwhile.
 */
export async function simulated<Result>(
  random: Random,
  body: (time: Time) => Promise<Result>,
): Promise<Result> {
  const { randomBytes, randomUUID } = crypto
  const mathRandom = Math.random
  const clock = FakeTimers.install({ now: START, ignoreMissingTimers: true })
  crypto.randomBytes = (size: number) =>
    Buffer.from(Array.from({ length: size }, () => random.below(256)))
  crypto.randomUUID = () => `uuid-${random.below(2 ** 32)}`
  Math.random = () => random.next()
  syncBuiltinESMExports()
  try {
    return await body(new Time(clock))
  } finally {
    clock.uninstall()
    Math.random = mathRandom
    Object.assign(crypto, { randomBytes, randomUUID })
    syncBuiltinESMExports()
  }
}

export class Time {
  readonly #clock: ReturnType<typeof FakeTimers.install>

  constructor(clock: ReturnType<typeof FakeTimers.install>) {
    this.#clock = clock
  }

  /** Milliseconds since 1970. */
  get now(): number {
    return this.#clock.now
  }

  at(ms: number, act: () => void): void {
    setTimeout(act, Math.max(0, ms - this.now))
  }

  /** Fires all timers until `end`, one after the other. After each, everything that it caused has run. */
  async until(end: number): Promise<void> {
    let due = true
    this.at(end, () => {
      due = false
    })
    while (due) {
      this.#clock.next()
      await new Promise<void>((resolve) => realImmediate(resolve))
    }
  }
}
