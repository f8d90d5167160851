import { expect } from 'vitest'
import { type AdapterOptions, expressSessionStore } from '../../src/adapters/express-session.ts'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { importConnectRedis } from '../../src/adapters/import-connect-redis.ts'
import type { OldStore } from '../../src/adapters/session-store.ts'
import { contextOf, setContext } from '../../src/core/context.ts'
import type { SessionStore } from '../../src/core/index.ts'

export type Fields = Record<string, unknown>

/** Runs before each call of a store. It may delay the call, or reject. */
export type Gate = () => Promise<unknown>

const open: Gate = async () => undefined

type Users = Pick<AdapterOptions, 'userOf'>

/** connect-redis and its Redis, which has keys without expiry. */
export class OldWorld {
  readonly #texts = new Map<string, string>()

  read = (id: string): Fields | undefined => JSON.parse(this.#texts.get(id) ?? 'null') ?? undefined
  save = (id: string, fields: Fields) => this.#texts.set(id, JSON.stringify(fields))
  destroy = (id: string) => this.#texts.delete(id)

  /** The store as a new process uses it. */
  store(gate = open): OldStore {
    return {
      get: (id, callback) =>
        gate().then(
          () => callback(null, this.read(id)),
          (error: unknown) => callback(error),
        ),
      destroy: (id, callback = () => undefined) =>
        gate().then(
          () => {
            this.destroy(id)
            callback()
          },
          (error: unknown) => callback(error),
        ),
    }
  }

  async import(store: SessionStore, gate = open, options: Users = {}): Promise<void> {
    const send = async ([name, argument = '']: string[]): Promise<unknown> => {
      if (name === 'GET') await gate()
      const text = this.#texts.get(argument.slice('sess:'.length))
      if (name === 'SCAN') return ['0', [...this.#texts.keys()].map((id) => `sess:${id}`)]
      if (name === 'TYPE') return text === undefined ? 'none' : 'string'
      if (name === 'GET') return text ?? null
      return text === undefined ? -2 : -1
    }
    await importConnectRedis(gated(store, gate), { send, ...options })
  }
}

/** The session store of one request to a new process. */
export const requestOf = (store: SessionStore, old: OldWorld, gate = open, options: Users = {}) => {
  const own = gated(store, gate)
  const external = externalSessions(own)
  const adapter = expressSessionStore(own, { migrateFrom: old.store(gate), ...options })
  return {
    get: async (id: string) => (await adapter.get(id)) as Fields | null | undefined,
    destroy: async (id: string) => await adapter.destroy(id),
    patch: async (id: string, fields: Fields) => await external.patch(id, fields),
    create: async (id: string, fields: Fields) => await external.put(id, fields),
  }
}

/** The same store, whose operations wait for the gate. */
function gated(store: SessionStore, gate: Gate): SessionStore {
  const context = contextOf(store)
  const { runner } = context
  const run: typeof runner.run = async (operation) => {
    await gate()
    return await runner.run(operation)
  }
  const own = { ...store }
  setContext(own, { ...context, runner: { ...runner, run } })
  return own
}

export const killed = new Error('killed')

/** A process that is killed after this number of calls. */
export function killedAfter(calls: number): Gate {
  let left = calls
  return async () => {
    if (left-- <= 0) throw killed
  }
}

interface Session {
  fields: Fields
  /**
   * `unknown`: it may have ended, by a logout that failed, or because the copy of an import is idle. It may be found
   * with its fields, but not again once it was not found.
   */
  is: 'alive' | 'unknown' | 'ended'
  /** Whether a new process has found it. */
  moved: boolean
  endedInNew: boolean
}

/** What clients know about their sessions. The ids are s0, s1, … */
export class Expected {
  readonly sessions: Session[] = []

  create(fields: Fields): string {
    this.sessions.push({ fields, is: 'alive', moved: false, endedInNew: false })
    return `s${this.sessions.length - 1}`
  }

  get(id: string): Session {
    return this.sessions[Number(id.slice(1))] as Session
  }

  idle(): void {
    for (const session of this.sessions) {
      if (session.moved) session.is = 'ended'
      else if (session.is === 'alive') session.is = 'unknown'
    }
  }

  /** The user's sessions in the new store, moved or copied, have ended. Old processes may still use those copied. */
  endInNew(ids: string[]): void {
    for (const session of ids.map((id) => this.get(id))) {
      session.endedInNew = true
      session.is = session.moved ? 'ended' : 'unknown'
    }
  }

  /** Checks what a request found in the old store. It may use the session. The copy of an idle session stays idle. */
  checkOld(id: string, found: Fields): void {
    const { is, fields } = this.get(id)
    expect(is).not.toBe('ended')
    expect(found).toEqual(fields)
  }

  /** Checks what a request found in the new store. Returns whether it may use the session. */
  check(id: string, found: Fields | null | undefined): boolean {
    const session = this.get(id)
    if (found) {
      expect(session.endedInNew).toBe(false)
      this.checkOld(id, found)
      session.is = 'alive'
      session.moved = true
      return true
    }
    expect(session.is).not.toBe('alive')
    session.is = 'ended'
    return false
  }
}

/** Runs actors one at a time. Each pauses at its gate; `choices` decide which one goes on. */
export class Interleaving {
  readonly #choices: number[]
  readonly #paused: (() => void)[] = []
  readonly #finished = Promise.withResolvers<void>()
  #running = 0

  constructor(choices: readonly number[]) {
    this.#choices = [...choices]
  }

  readonly gate: Gate = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#paused.push(resolve)
    this.#stop()
    return promise
  }

  readonly start = (actor: () => Promise<unknown>): void => {
    this.#running++
    actor().then(() => this.#stop(), this.#finished.reject)
  }

  /** Resolves when all actors have finished; rejects if one fails. */
  get finished(): Promise<void> {
    return this.#finished.promise
  }

  #stop(): void {
    this.#running--
    if (this.#running > 0) return
    const choice = (this.#choices.shift() ?? 0) % (this.#paused.length || 1)
    const [resume] = this.#paused.splice(choice, 1)
    if (resume === undefined) this.#finished.resolve()
    else {
      this.#running++
      resume()
    }
  }
}
