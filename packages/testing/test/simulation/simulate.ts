import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Callers, HANGS_MS, IDLE_SECONDS, USERS } from './callers.ts'
import { Server } from './network.ts'
import { Process } from './process.ts'
import { Random, simulated, type Time } from './world.ts'

// A service of three processes on one Redis, with the real store. A seed decides the order of all commands, what is
// lost, when connections are cut, when Redis hangs, when a process crashes, and how wrong the clocks are.

const HOUR = 3_600_000
const MAX_SESSIONS = 4

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

class Service {
  readonly #time: Time
  readonly #random: Random
  readonly #server: Server
  readonly #isLimited: boolean
  readonly #processes: Process[] = []
  readonly #callers: Callers
  #faults = 0

  constructor(time: Time, random: Random) {
    this.#time = time
    this.#random = random
    this.#server = new Server(time)
    this.#isLimited = random.chance(0.3)
    for (let index = 0; index < 3; index++) this.#startProcess(index)
    this.#callers = new Callers(time, random, this.#processes, this.#isLimited)
  }

  async run(seed: number, hours: number): Promise<Report> {
    const end = this.#time.now + hours * HOUR
    const callers = this.#callers
    for (let caller = 0; caller < 6; caller++) void callers.live(end)
    void this.#trouble(end)
    for (let now = this.#time.now; now < end; now = this.#time.now) {
      await this.#time.until(Math.min(end, now + 600_000))
      callers.check()
      // Enough that callers meet sessions that ended long ago, and few enough that they meet each other.
      callers.logins = callers.logins.filter(
        (login, index, { length }) => callers.isAlive(login) || index > length - 60,
      )
    }
    await this.#heal()
    this.#checkCounts()
    this.#checkLeftovers()
    await this.#checkSessions()
    await this.#checkMaximum()
    await this.#end()
    return { seed, hours, calls: callers.calls, faults: this.#faults }
  }

  #startProcess(index: number): void {
    const maxSessionsPerUser = this.#isLimited ? MAX_SESSIONS : 10_000
    const limits = { idleSeconds: IDLE_SECONDS, maxSessionsPerUser }
    this.#processes[index] = new Process(this.#time, this.#random, this.#server, limits)
  }

  /** Cuts connections, lets Redis hang, ends processes without notice, moves clocks. */
  async #trouble(end: number): Promise<void> {
    const random = this.#random
    while (this.#time.now < end) {
      await sleep(random.exponential(60_000))
      if (this.#time.now >= end) return
      this.#faults++
      const index = random.below(this.#processes.length)
      const process = this.#processes[index] as Process
      const faults = [
        () => process.connection.cut(random.exponential(3_000)),
        () => process.connection.cutInFlight(random.exponential(3_000)),
        () => process.connection.cutInFlight(0),
        () => process.connection.cutInFlight(0),
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
    for (const { connection } of this.#processes) connection.heal()
    await this.#time.until(this.#time.now + HANGS_MS)
    this.#callers.check()
    assert.equal(this.#callers.waiting, 0, 'calls are still waiting')
  }

  /** Each acknowledged view is counted once. */
  #checkCounts(): void {
    const { memory } = this.#server
    for (const [item, count] of this.#callers.counts) {
      const found = -(memory.sorted('sim:viewed:').get(item) ?? 0)
      const { sure, possible } = count
      assert(
        count.allows(found),
        `${item}: ${found} views, ${sure} acknowledged, ${possible} possible`,
      )
    }
  }

  /** Sessions that nobody ended work and are in their user's list; ended ones were reported. */
  async #checkSessions(): Promise<void> {
    const process = this.#processes[0] as Process
    const uses = this.#callers.logins.map((login) => this.#callers.touch(process, login))
    await this.#time.until(this.#time.now + HANGS_MS)
    await Promise.all(uses)
    this.#callers.check()
    // The list of each user has the sessions that work.
    for (const user of USERS) {
      const alive = this.#callers.loginsOf(user).filter((login) => this.#callers.isAlive(login))
      const [first] = alive
      if (!first) continue
      const listing = this.#callers.call(
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
    assert(views <= this.#callers.unknown.views, `${views} lists of views without a session`)
    assert.deepEqual(without('sim:data:'), [], 'data without a session')
    const seen = [...memory.sorted('sim:recent:').keys()].filter((id) => !alive.has(id)).length
    assert(seen <= this.#callers.unknown.logins, `${seen} sessions in recent without a login`)
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
      const login = this.#callers.call(process, 'login', () => process.store.login(user))
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
    this.#callers.check()
    const closing = this.#processes.map(({ store }) => store.close())
    await this.#time.until(this.#time.now + HANGS_MS)
    await Promise.all(closing)
  }
}
