import assert from 'node:assert/strict'
import { batching, SessionStore, StoreError } from '@onetrip/session-store'
import { Count, type Ending, endingOf, Login } from './model.ts'
import { Connection, Server } from './network.ts'
import { Random, simulated, type Time } from './world.ts'

// A service of three processes on one Redis, with the real store. A seed decides the order of all commands, what is
// lost, when connections are cut, when Redis hangs, when a process crashes, and how wrong the clocks are.

const HOUR = 3_600_000
const ITEMS = ['book', 'pen', 'lamp', 'tea']
const USERS = ['ada', 'bob', 'cleo', 'dan', 'eve', 'fay']
const FIELDS = ['a', 'b', 'c']
const MAX_SESSIONS = 4
const IDLE_SECONDS = 12 * 3600
/** A call that takes longer hangs: several round trips, each with its deadline. */
const HANGS_MS = 120_000

export interface Report {
  readonly seed: number
  readonly hours: number
  readonly calls: number
  readonly faults: number
}

/** @throws AssertionError, whose message names the seed. */
export async function simulate(seed: number, hours: number): Promise<Report> {
  const random = new Random(seed)
  try {
    return await simulated(random, (time) => new Service(time, random).run(seed, hours))
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
  }
}

class Process {
  readonly store: SessionStore
  readonly connection: Connection
  /** Milliseconds by which its clock is ahead. */
  skew: number
  crashed = false

  constructor(time: Time, random: Random, server: Server, maxSessionsPerUser: number) {
    this.connection = new Connection(time, random, server)
    this.skew = random.between(-20_000, 20_000)
    this.store = new SessionStore({
      sender: batching(this.connection.sender),
      prefix: 'sim:',
      tokens: {
        secrets: ['a-secret-of-the-simulation-a-secret-of-it'],
        clock: () => time.now + this.skew,
        lifetimeSeconds: 90 * 86_400,
      },
      idleSeconds: IDLE_SECONDS,
      maxSessionsPerUser,
      janitor: { intervalSeconds: 300, rescaleEverySeconds: 1e9 },
    })
  }
}

class Service {
  readonly #time: Time
  readonly #random: Random
  readonly #server: Server
  readonly #isLimited: boolean
  readonly #counts = new Map(ITEMS.map((item) => [item, new Count()]))
  #logins: Login[] = []
  readonly #processes: Process[] = []
  readonly #pending = new Map<object, { what: string; since: number }>()
  /** Calls whose outcome nobody knows. */
  readonly #unknown = { logins: 0, views: 0 }
  readonly #endings: { user: string; until: number }[] = []
  readonly #watched: { login: Login; process: Process; told: boolean }[] = []
  #failure: unknown
  #value = 0
  #calls = 0
  #faults = 0

  constructor(time: Time, random: Random) {
    this.#time = time
    this.#random = random
    this.#server = new Server(time)
    this.#isLimited = random.chance(0.3)
    for (let index = 0; index < 3; index++) this.#startProcess(index)
  }

  async run(seed: number, hours: number): Promise<Report> {
    const end = this.#time.now + hours * HOUR
    for (let caller = 0; caller < 6; caller++) void this.#live(end)
    void this.#trouble(end)
    for (let now = this.#time.now; now < end; now = this.#time.now) {
      await this.#time.until(Math.min(end, now + 600_000))
      this.#check()
      // Enough that callers meet sessions that ended long ago, and few enough that they meet each other.
      this.#logins = this.#logins.filter(
        (login, index, { length }) => this.#isAlive(login) || index > length - 60,
      )
    }
    await this.#heal()
    await this.#settle()
    await this.#checkMaximum()
    await this.#end()
    return { seed, hours, calls: this.#calls, faults: this.#faults }
  }

  #startProcess(index: number): void {
    this.#processes[index] = new Process(
      this.#time,
      this.#random,
      this.#server,
      this.#isLimited ? MAX_SESSIONS : 10_000,
    )
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }

  #check(): void {
    if (this.#failure) throw this.#failure
    for (const { what, since } of this.#pending.values()) {
      assert(this.#time.now - since < HANGS_MS, `${what} hangs for ${this.#time.now - since} ms`)
    }
  }

  /** A user agent: thinks for a minute, then does something, often at the same moment as others. */
  async #live(end: number): Promise<void> {
    const random = this.#random
    while (this.#time.now < end) {
      await this.#sleep(random.exponential(60_000))
      if (this.#time.now >= end) return
      const login = this.#logins.length > 0 ? random.of(this.#logins) : undefined
      const together = random.chance(0.3) ? 1 + random.below(5) : 1
      const acts = Array.from({ length: together }, () => this.#act(login))
      await Promise.all(acts)
    }
  }

  async #act(login: Login | undefined): Promise<void> {
    const random = this.#random
    const process = random.of(this.#processes)
    await this.#sleep(random.exponential(1))
    if (!login || random.chance(0.12)) return await this.#login(process, random.of(USERS))
    const acts = [
      () => this.#view(process, login),
      () => this.#view(process, login),
      () => this.#viewOnce(login),
      () => this.#read(process, login),
      () => this.#patch(process, login),
      () => this.#touch(process, login),
      () => this.#logout(process, login),
      () => this.#endOthers(process, login),
      () => this.#watch(process, login),
    ]
    if (random.chance(0.05)) await this.#endUser(process, login.user)
    else await random.of(acts)()
  }

  /**
   * Calls the store. Returns how it ended, and its result. The call of a process that crashes never returns.
   *
   * @param use A call that needs the session: it must fail once the session has ended.
   */
  async #call<Result>(
    process: Process,
    what: string,
    call: () => Promise<Result>,
    use?: Login,
  ): Promise<{ ending: Ending; result?: Result; error?: StoreError }> {
    this.#calls++
    const since = this.#time.now
    const key = {}
    this.#pending.set(key, { what, since })
    try {
      const result = await call()
      this.#pending.delete(key)
      if (process.crashed) return { ending: 'unknown' }
      if (use && since > use.endedAt) this.#fail(`${what} works after the session has ended`)
      return { ending: 'done', result }
    } catch (error) {
      this.#pending.delete(key)
      if (process.crashed) return { ending: 'unknown' }
      if (!(error instanceof StoreError)) this.#fail(`${what} threw ${error}`)
      const { code, message } = error as StoreError
      if (code === 'ONETRIP_UNKNOWN_SESSION' && use && this.#isAlive(use)) {
        this.#fail(`${what}: the session has ended, though nobody ended it`)
      }
      if (
        !['ONETRIP_UNKNOWN_SESSION', 'ONETRIP_NOT_SENT', 'ONETRIP_OUTCOME_UNKNOWN'].includes(code)
      ) {
        this.#fail(`${what}: ${code}: ${message}`)
      }
      return { ending: endingOf(error), error: error as StoreError }
    }
  }

  /** A call that keeps the session from being idle. */
  async #use<Result>(
    ...[process, what, call, login]: [Process, string, () => Promise<Result>, Login]
  ) {
    const since = this.#time.now
    const called = await this.#call(process, what, call, login)
    if (called.ending === 'done') login.usedAt = Math.max(login.usedAt, since)
    return called
  }

  #isAlive(login: Login): boolean {
    return login.isAlive(this.#time.now, 1000 * IDLE_SECONDS - HANGS_MS)
  }

  #fail(message: string): void {
    this.#failure ??= new Error(message)
  }

  /** With a small maximum, a login may end any other session of its user: clocks differ, so "the newest" is not sure. */
  async #login(process: Process, user: string): Promise<void> {
    const at = this.#time.now
    const others = this.#isLimited ? this.#loginsOf(user) : []
    const running = this.#isLimited ? this.#endingOf(user) : undefined
    for (const login of others) login.mayEnd = true
    const call = () => process.store.login(user)
    const { result, ending } = await this.#call(process, `login of ${user}`, call)
    if (ending === 'unknown') this.#unknown.logins++
    if (result) {
      const login = new Login(result.token, user, at)
      login.mayEnd = this.#endings.some(
        (one) => one !== running && one.user === user && one.until >= at,
      )
      this.#logins.push(login)
    }
    if (running) running.until = this.#time.now + HANGS_MS
  }

  #loginsOf(user: string): Login[] {
    return this.#logins.filter((login) => login.user === user)
  }

  /** A call that ends sessions of the user: also those that begin while it runs. */
  #endingOf(user: string): { user: string; until: number } {
    const running = { user, until: Number.POSITIVE_INFINITY }
    this.#endings.push(running)
    return running
  }

  async #view(process: Process, login: Login): Promise<void> {
    const item = this.#random.of(ITEMS)
    const call = () => process.store.recordView(login.token, item)
    const { ending } = await this.#use(process, 'recordView', call, login)
    if (ending === 'unknown') this.#unknown.views++
    this.#counts.get(item)?.add(ending)
  }

  /** Repeats a view with an idempotency key until it knows the outcome. */
  async #viewOnce(login: Login): Promise<void> {
    const item = this.#random.of(ITEMS)
    const idempotencyKey = `key-${this.#value++}`
    let mayHave = false
    for (let tries = 0; tries < 5; tries++) {
      const process = this.#random.of(this.#processes)
      const call = () => process.store.recordView(login.token, item, { idempotencyKey })
      const { ending, error } = await this.#use(process, 'recordView with a key', call, login)
      if (ending === 'done') return this.#counts.get(item)?.add('done')
      mayHave ||= ending === 'unknown'
      if (ending === 'unknown') this.#unknown.views++
      if (error?.code === 'ONETRIP_UNKNOWN_SESSION') break
      await this.#sleep(this.#random.exponential(20_000))
    }
    this.#counts.get(item)?.add(mayHave ? 'unknown' : 'nothing')
  }

  async #read(process: Process, login: Login): Promise<void> {
    const from = this.#time.now
    const call = () => process.store.checkToken(login.token, { data: true })
    const { result } = await this.#call(process, 'checkToken', call, login)
    if (!result) return
    if (result.user !== login.user) this.#fail(`checkToken found ${result.user}`)
    for (const name of FIELDS) {
      const found = result.data.fields[name] as number | undefined
      if (!login.field(name).allows(found, from, this.#time.now)) {
        this.#fail(`field ${name} is ${found}, which no write allows`)
      }
    }
  }

  async #patch(process: Process, login: Login): Promise<void> {
    const name = this.#random.of(FIELDS)
    const value = this.#value++
    const done = login.field(name).write(value, this.#time.now)
    const call = () => process.store.patch(login.token, { [name]: value })
    const { ending } = await this.#use(process, 'patch', call, login)
    done(ending, this.#time.now)
  }

  async #touch(process: Process, login: Login): Promise<void> {
    await this.#use(process, 'touch', () => process.store.touch(login.token), login)
  }

  /** Marks sessions that a call ends: from now on they may end, and after it has returned they have. */
  async #ends(logins: readonly Login[], user: string, call: () => Promise<Ending>): Promise<void> {
    for (const login of logins) login.mayEnd = true
    const running = this.#endingOf(user)
    const ending = await call()
    running.until = this.#time.now + HANGS_MS
    if (ending !== 'done') return
    for (const login of logins) login.endedAt = Math.min(login.endedAt, this.#time.now)
  }

  async #logout(process: Process, login: Login): Promise<void> {
    await this.#ends([login], '', async () => {
      const call = () => process.store.logout(login.token)
      return (await this.#call(process, 'logout', call)).ending
    })
  }

  async #endOthers(process: Process, login: Login): Promise<void> {
    const others = this.#loginsOf(login.user).filter((one) => one !== login)
    await this.#ends(others, login.user, async () => {
      const call = () => process.store.endOtherSessions(login.token)
      return (await this.#call(process, 'endOtherSessions', call, login)).ending
    })
  }

  async #endUser(process: Process, user: string): Promise<void> {
    await this.#ends(this.#loginsOf(user), user, async () => {
      const call = () => process.store.endUserSessions(user)
      return (await this.#call(process, 'endUserSessions', call)).ending
    })
  }

  /** A WebSocket: it wants to know when its session ends. */
  async #watch(process: Process, login: Login): Promise<void> {
    const watched = { login, process, told: false }
    const call = () =>
      process.store.watchSession(login.token, () => {
        watched.told = true
        if (this.#isAlive(login)) this.#fail('watchSession reported the end of a live session')
      })
    const { ending } = await this.#call(process, 'watchSession', call, login)
    if (ending === 'done') this.#watched.push(watched)
  }

  /** Cuts connections, lets Redis hang, ends processes without notice, moves clocks. */
  async #trouble(end: number): Promise<void> {
    const random = this.#random
    while (this.#time.now < end) {
      await this.#sleep(random.exponential(60_000))
      if (this.#time.now >= end) return
      this.#faults++
      const index = random.below(this.#processes.length)
      const process = this.#processes[index] as Process
      const faults = [
        () => process.connection.cut(random.exponential(3_000)),
        () => process.connection.cut(0),
        () => {
          for (const one of this.#processes) one.connection.cut(random.exponential(5_000))
        },
        () => {
          this.#server.hangsUntil = this.#time.now + random.exponential(3_000)
        },
        () => {
          process.crashed = true
          process.connection.cut(Number.POSITIVE_INFINITY)
          void process.store.close().catch(() => {})
          this.#startProcess(index)
        },
        () => {
          process.skew = random.between(-25_000, 25_000)
        },
      ]
      random.of(faults)()
    }
  }

  /** No more faults. */
  async #heal(): Promise<void> {
    this.#server.hangsUntil = 0
    await this.#time.until(this.#time.now + HANGS_MS)
    this.#check()
    assert.equal(this.#pending.size, 0, 'calls are still waiting')
  }

  /** Now that nothing fails, counts, sessions and lists must be right. */
  async #settle(): Promise<void> {
    const { memory } = this.#server
    for (const [item, count] of this.#counts) {
      const found = -(memory.sorted('sim:viewed:').get(item) ?? 0)
      const { sure, possible } = count
      assert(
        count.allows(found),
        `${item}: ${found} views, ${sure} acknowledged, ${possible} possible`,
      )
    }
    const process = this.#processes[0] as Process
    this.#checkLeftovers()
    const uses = this.#logins.map((login) => this.#touch(process, login))
    await this.#time.until(this.#time.now + HANGS_MS)
    await Promise.all(uses)
    for (const { login, process: own, told } of this.#watched) {
      if (!own.crashed && login.endedAt < Number.POSITIVE_INFINITY) {
        assert(told, 'watchSession was not told of an end')
      }
    }
    this.#check()
    // The list of each user has the sessions that work.
    for (const user of USERS) {
      const alive = this.#loginsOf(user).filter((login) => this.#isAlive(login))
      const [first] = alive
      if (!first) continue
      const listing = this.#call(
        process,
        'userSessions',
        () => process.store.userSessions(first.token),
        first,
      )
      await this.#time.until(this.#time.now + HANGS_MS)
      const ids = new Set((await listing).result?.sessions.map(({ id }) => id))
      const missing = alive.filter(({ token }) => !ids.has(token.split('.')[0] ?? ''))
      assert.equal(
        missing.length,
        0,
        `the list of ${user} misses ${missing.length} of ${alive.length}`,
      )
    }
  }

  /** Records without a session are left only by calls whose outcome nobody knows. */
  #checkLeftovers(): void {
    const { memory } = this.#server
    const alive = memory.hash('sim:login:')
    const without = (prefix: string) =>
      memory.keys().filter((key) => key.startsWith(prefix) && !alive.has(key.slice(prefix.length)))
    const views = without('sim:viewed:').length - 1 // the counts themselves
    assert(views <= this.#unknown.views, `${views} lists of views without a session`)
    assert.deepEqual(without('sim:data:'), [], 'data without a session')
    const seen = [...memory.sorted('sim:recent:').keys()].filter((id) => !alive.has(id)).length
    assert(seen <= this.#unknown.logins, `${seen} sessions in recent without a login`)
  }

  /** One more login of each user: it ends all but the newest, and no others. */
  async #checkMaximum(): Promise<void> {
    if (!this.#isLimited) return
    const { memory } = this.#server
    const count = (user: string) =>
      [...memory.hash('sim:login:').values()].filter((owner) => owner === user).length
    for (const user of USERS) {
      const before = count(user)
      const process = this.#processes[0] as Process
      const login = this.#call(process, 'login', () => process.store.login(user))
      await this.#time.until(this.#time.now + HANGS_MS)
      await login
      assert.equal(count(user), Math.min(MAX_SESSIONS, before + 1), `sessions of ${user}`)
    }
  }

  /** After days without a request, nothing is left but counts and the janitor's own keys. */
  async #end(): Promise<void> {
    for (let day = 0; day < 3; day++) {
      await this.#time.until(this.#time.now + 13 * HOUR)
    }
    const left = this.#server.memory
      .keys()
      .filter((key) => /^sim:(login:|recent:|viewed:.|data:|sessions:)/.test(key))
    assert.deepEqual(left, [], 'keys of ended sessions are left')
    this.#check()
    const closing = this.#processes.map(({ store }) => store.close())
    await this.#time.until(this.#time.now + HANGS_MS)
    await Promise.all(closing)
  }
}
