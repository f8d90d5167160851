import { batching, SessionStore } from '@onetrip/session-store'
import { Connection, type Server } from './network.ts'
import type { Random, Time } from './world.ts'

/** A process of the service, with the real store. */
export class Process {
  readonly store: SessionStore
  readonly connection: Connection
  /** Milliseconds by which its clock is ahead. */
  skew: number
  crashed = false

  constructor(time: Time, random: Random, server: Server, limits: Limits) {
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
      ...limits,
      janitor: { intervalSeconds: 300, rescaleEverySeconds: 1e9 },
    })
  }
}

interface Limits {
  idleSeconds: number
  maxSessionsPerUser: number
}
