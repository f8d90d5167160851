import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '@onetrip/session-store'
import { Count, type Ending, endingOf, Login } from './model.ts'
import type { Process } from './process.ts'
import type { Random, Time } from './world.ts'

const ITEMS = ['book', 'pen', 'lamp', 'tea']
export const USERS = ['ada', 'bob', 'cleo', 'dan', 'eve', 'fay']
const FIELDS = ['a', 'b', 'c']
export const IDLE_SECONDS = 12 * 3600
/** A call that takes longer hangs: several round trips, each with its deadline. */
export const HANGS_MS = 120_000

/** What users do, and what the store may therefore show. */
export class Callers {
  readonly #time: Time
  readonly #random: Random
  readonly #processes: readonly Process[]
  /** Whether a login may end other sessions of its user. */
  readonly #isLimited: boolean
  readonly counts = new Map(ITEMS.map((item) => [item, new Count()]))
  logins: Login[] = []
  #watched: { login: Login; process: Process; told: boolean }[] = []
  /** Calls whose outcome nobody knows. */
  readonly unknown = { logins: 0, views: 0 }
  calls = 0
  readonly #pending = new Map<object, { what: string; since: number }>()
  #endings: { user: string; until: number }[] = []
  #failure: unknown
  #value = 0

  constructor(time: Time, random: Random, processes: readonly Process[], isLimited: boolean) {
    this.#time = time
    this.#random = random
    this.#processes = processes
    this.#isLimited = isLimited
  }

  get waiting(): number {
    return this.#pending.size
  }

  /** @throws Error at the first call that did what it must not, or that hangs. */
  check(): void {
    if (this.#failure) throw this.#failure
    this.#endings = this.#endings.filter(({ until }) => until >= this.#time.now - HANGS_MS)
    this.#watched = this.#watched.filter(({ process, told }) => !process.crashed && !told)
    for (const { login } of this.#watched) {
      assert(this.#time.now - login.endedAt < HANGS_MS, 'watchSession was not told of an end')
    }
    for (const { what, since } of this.#pending.values()) {
      assert(this.#time.now - since < HANGS_MS, `${what} hangs for ${this.#time.now - since} ms`)
    }
  }

  /** A user agent: thinks for a minute, then does something, often at the same moment as others. */
  async live(end: number): Promise<void> {
    const random = this.#random
    while (this.#time.now < end) {
      await sleep(random.exponential(60_000))
      if (this.#time.now >= end) return
      // Mostly a session that nobody has ended, so that calls meet its end.
      const alive = this.logins.filter((login) => this.isAlive(login))
      const known = alive.length > 0 && random.chance(0.8) ? alive : this.logins
      const login = known.length > 0 ? random.of(known) : undefined
      const together = random.chance(0.5) ? 1 + random.below(5) : 1
      const acts = Array.from({ length: together }, () => this.act(login))
      await Promise.all(acts)
    }
  }

  async act(login: Login | undefined): Promise<void> {
    const random = this.#random
    const process = random.of(this.#processes)
    await sleep(random.exponential(1))
    if (!login || random.chance(0.08)) return await this.login(process, random.of(USERS))
    const acts = [
      () => this.view(process, login),
      () => this.view(process, login),
      () => this.viewOnce(login),
      () => this.viewOnce(login),
      () => this.read(process, login),
      () => this.patch(process, login),
      () => this.touch(process, login),
      () => this.watch(process, login),
      () => this.logout(process, login),
    ]
    const kind = random.next()
    if (kind < 0.02) await this.endUser(process, login.user)
    else if (kind < 0.04) await this.endOthers(process, login)
    else await random.of(acts)()
  }

  /**
   * Calls the store. Returns how it ended, and its result. The call of a process that crashes never returns.
   *
   * @param use A call that needs the session: it must fail once the session has ended.
   */
  async call<Result>(
    process: Process,
    what: string,
    call: () => Promise<Result>,
    use?: Login,
  ): Promise<{ ending: Ending; result?: Result; error?: StoreError }> {
    this.calls++
    const since = this.#time.now
    const key = {}
    this.#pending.set(key, { what, since })
    try {
      const result = await call()
      this.#pending.delete(key)
      if (process.crashed) return { ending: 'unknown' }
      if (use && since > use.endedAt) this.fail(`${what} works after the session has ended`)
      return { ending: 'done', result }
    } catch (error) {
      this.#pending.delete(key)
      if (process.crashed) return { ending: 'unknown' }
      if (!(error instanceof StoreError)) this.fail(`${what} threw ${error}`)
      const { code, message } = error as StoreError
      if (code === 'ONETRIP_UNKNOWN_SESSION' && use && this.isAlive(use)) {
        this.fail(`${what}: the session has ended, though nobody ended it`)
      }
      if (
        !['ONETRIP_UNKNOWN_SESSION', 'ONETRIP_NOT_SENT', 'ONETRIP_OUTCOME_UNKNOWN'].includes(code)
      ) {
        this.fail(`${what}: ${code}: ${message}`)
      }
      return { ending: endingOf(error), error: error as StoreError }
    }
  }

  /** A call that keeps the session from being idle. */
  async use<Result>(
    ...[process, what, call, login]: [Process, string, () => Promise<Result>, Login]
  ) {
    const since = this.#time.now
    const called = await this.call(process, what, call, login)
    if (called.ending === 'done') login.usedAt = Math.max(login.usedAt, since)
    return called
  }

  isAlive(login: Login): boolean {
    return login.isAlive(this.#time.now, 1000 * IDLE_SECONDS - HANGS_MS)
  }

  fail(message: string): void {
    this.#failure ??= new Error(message)
  }

  /** With a small maximum, a login may end any other session of its user: clocks differ, so "the newest" is not sure. */
  async login(process: Process, user: string): Promise<void> {
    const at = this.#time.now
    const others = this.#isLimited ? this.loginsOf(user) : []
    const running = this.#isLimited ? this.endingOf(user) : undefined
    for (const login of others) login.mayEnd = true
    const call = () => process.store.login(user)
    const { result, ending } = await this.call(process, `login of ${user}`, call)
    if (ending === 'unknown') this.unknown.logins++
    if (result) {
      const login = new Login(result.token, user, at)
      login.mayEnd = this.#endings.some(
        (one) => one !== running && one.user === user && one.until >= at,
      )
      this.logins.push(login)
    }
    if (running) running.until = this.#time.now + HANGS_MS
  }

  loginsOf(user: string): Login[] {
    return this.logins.filter((login) => login.user === user)
  }

  /** A call that ends sessions of the user: also those that begin while it runs. */
  endingOf(user: string): { user: string; until: number } {
    const running = { user, until: Number.POSITIVE_INFINITY }
    this.#endings.push(running)
    return running
  }

  async view(process: Process, login: Login): Promise<void> {
    const item = this.#random.of(ITEMS)
    const call = () => process.store.recordView(login.token, item)
    const { ending } = await this.use(process, 'recordView', call, login)
    if (ending === 'unknown') this.unknown.views++
    this.counts.get(item)?.add(ending)
  }

  /** Repeats a view with an idempotency key until it knows the outcome. */
  async viewOnce(login: Login): Promise<void> {
    const item = this.#random.of(ITEMS)
    const idempotencyKey = `key-${this.#value++}`
    let mayHave = false
    for (let tries = 0; tries < 5; tries++) {
      const process = this.#random.of(this.#processes)
      const call = () => process.store.recordView(login.token, item, { idempotencyKey })
      const { ending, error } = await this.use(process, 'recordView with a key', call, login)
      if (ending === 'done') return this.counts.get(item)?.add('done')
      mayHave ||= ending === 'unknown'
      if (ending === 'unknown') this.unknown.views++
      if (error?.code === 'ONETRIP_UNKNOWN_SESSION') break
      await sleep(this.#random.exponential(20_000))
    }
    this.counts.get(item)?.add(mayHave ? 'unknown' : 'nothing')
  }

  async read(process: Process, login: Login): Promise<void> {
    const from = this.#time.now
    const call = () => process.store.checkToken(login.token, { data: true })
    const { result } = await this.call(process, 'checkToken', call, login)
    if (!result) return
    if (result.user !== login.user) this.fail(`checkToken found ${result.user}`)
    for (const name of FIELDS) {
      const found = result.data.fields[name] as number | undefined
      if (!login.field(name).allows(found, from, this.#time.now)) {
        this.fail(`field ${name} is ${found}, which no write allows`)
      }
    }
  }

  async patch(process: Process, login: Login): Promise<void> {
    const name = this.#random.of(FIELDS)
    const value = this.#value++
    const done = login.field(name).write(value, this.#time.now)
    const call = () => process.store.patch(login.token, { [name]: value })
    const { ending } = await this.use(process, 'patch', call, login)
    done(ending, this.#time.now)
  }

  async touch(process: Process, login: Login): Promise<void> {
    await this.use(process, 'touch', () => process.store.touch(login.token), login)
  }

  /** Marks sessions that a call ends: from now on they may end, and after it has returned they have. */
  async ends(logins: readonly Login[], user: string, call: () => Promise<Ending>): Promise<void> {
    for (const login of logins) login.mayEnd = true
    const running = this.endingOf(user)
    const ending = await call()
    running.until = this.#time.now + HANGS_MS
    if (ending !== 'done') return
    for (const login of logins) login.endedAt = Math.min(login.endedAt, this.#time.now)
  }

  async logout(process: Process, login: Login): Promise<void> {
    await this.ends([login], '', async () => {
      const call = () => process.store.logout(login.token)
      return (await this.call(process, 'logout', call)).ending
    })
  }

  async endOthers(process: Process, login: Login): Promise<void> {
    const others = this.loginsOf(login.user).filter((one) => one !== login)
    await this.ends(others, login.user, async () => {
      const call = () => process.store.endOtherSessions(login.token)
      return (await this.call(process, 'endOtherSessions', call, login)).ending
    })
  }

  async endUser(process: Process, user: string): Promise<void> {
    await this.ends(this.loginsOf(user), user, async () => {
      const call = () => process.store.endUserSessions(user)
      return (await this.call(process, 'endUserSessions', call)).ending
    })
  }

  /** A WebSocket: it wants to know when its session ends. */
  async watch(process: Process, login: Login): Promise<void> {
    const watched = { login, process, told: false }
    const call = () =>
      process.store.watchSession(login.token, () => {
        watched.told = true
        if (this.isAlive(login)) this.fail('watchSession reported the end of a live session')
      })
    const { ending } = await this.call(process, 'watchSession', call, login)
    if (ending === 'done') this.#watched.push(watched)
  }
}
