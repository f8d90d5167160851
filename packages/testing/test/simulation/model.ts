import { StoreError } from '@onetrip/session-store'

// What the calls of a simulation allow: which counts, sessions and data may be found afterwards.

/** How a call ended: it did what it should; it did nothing; or nobody knows. */
export type Ending = 'done' | 'nothing' | 'unknown'

/** The ending that an error of the store claims. Any other error is a fault of the store. */
export function endingOf(error: unknown): Ending {
  if (!(error instanceof StoreError)) throw error
  return error.mayHaveWritten ? 'unknown' : 'nothing'
}

/** Views of one item. */
export class Count {
  sure = 0
  possible = 0

  add(ending: Ending): void {
    if (ending === 'done') this.sure++
    if (ending !== 'nothing') this.possible++
  }

  allows(found: number): boolean {
    return found >= this.sure && found <= this.possible
  }
}

interface Write {
  readonly value: number
  readonly from: number
  /** When it had taken effect at the latest; Infinity if nobody knows. */
  until: number
  ending: Ending | 'running'
}

/** One field of a session's data, which several calls write at once. */
export class Register {
  readonly #writes: Write[] = []

  /** Returns a function that says how the write ended. */
  write(value: number, now: number): (ending: Ending, at: number) => void {
    const write: Write = { value, from: now, until: Number.POSITIVE_INFINITY, ending: 'running' }
    this.#writes.push(write)
    return (ending, at) => {
      write.ending = ending
      if (ending === 'done') write.until = at
    }
  }

  /** Whether a read that ran from `from` to `to` may have found this value; undefined: no value. */
  allows(value: number | undefined, from: number, to: number): boolean {
    const candidates = this.#writes.filter(
      (write) => write.ending !== 'nothing' && write.from <= to,
    )
    const overwritten = (earlier: number) =>
      candidates.some((write) => write.from > earlier && write.until < from)
    if (value === undefined) return !candidates.some(({ until }) => until < from)
    return candidates.some((write) => write.value === value && !overwritten(write.until))
  }
}

/** A login of a user. */
export class Login {
  readonly token: string
  readonly user: string
  /** When a call had ended it for sure. */
  endedAt = Number.POSITIVE_INFINITY
  /** Whether a call may have ended it, or will. */
  mayEnd = false
  /** The beginning of the last call that kept it from being idle. */
  usedAt: number
  readonly fields = new Map<string, Register>()

  constructor(token: string, user: string, at: number) {
    this.token = token
    this.user = user
    this.usedAt = at
  }

  field(name: string): Register {
    const found = this.fields.get(name) ?? new Register()
    this.fields.set(name, found)
    return found
  }

  /** Whether it must work now: nothing can have ended it, nor was it idle for nearly this long. */
  isAlive(now: number, idleMs: number): boolean {
    return !this.mayEnd && this.endedAt === Number.POSITIVE_INFINITY && now - this.usedAt < idleMs
  }
}
