import {
  type Command,
  type Outcome,
  type Sender,
  SessionStore,
  type SessionStoreOptions,
  StoreError,
} from '@onetrip/session-store'
import { check, execute } from './commands.ts'
import { Memory } from './memory.ts'

type Sending = 'redis' | 'poolSize' | 'sender'

/** Those of `SessionStore`, except how commands are sent. The default of `janitor` is `'elsewhere'`. */
export interface TestStoreOptions extends Omit<SessionStoreOptions, Sending | 'tokens'> {
  /** The default of `secrets` is a secret that everybody knows. */
  tokens?: Partial<Omit<SessionStoreOptions['tokens'], 'clock'>>
  /** Without it, `NODE_ENV=production` is refused. */
  allowInProduction?: boolean
}

/**
 * What happens to an operation, which is the commands of one round trip.
 *
 * `not sent`: there is no connection (`ONETRIP_NOT_SENT`). `request lost`: Redis has not executed it, and `reply lost`:
 * Redis has executed it, but the caller cannot know (both `ONETRIP_OUTCOME_UNKNOWN`).
 */
export type Failure = (typeof failures)[number]

const failures = ['not sent', 'request lost', 'reply lost'] as const

export interface FailureOptions {
  /** Only operations that contain this command, such as `HSET`. Default: any. */
  command?: string
  /** How many operations fail. `Infinity`: all. Default 1. */
  times?: number
}

export interface TestStore {
  store: SessionStore
  /** The clock of the store, in milliseconds since 1970. It stands still, unless you set it. */
  clock: { now: number; pass(seconds: number): void }
  /** Lets the next operations fail. Returns a function that ends this. */
  failNext(failure: Failure, options?: FailureOptions): () => void
  /** Closes the subscriptions of `watchSession`. The store opens new ones. */
  loseSubscriptions(): void
}

const SECRET = 'the secret of the store for tests, which everybody knows'

/**
 * A store without Redis, for the tests of an application. It is a session store whose commands are executed in memory,
 * at once, without sockets. Its janitor does not run by itself.
 *
 * @throws TypeError as `SessionStore`; in production, unless `allowInProduction` is true.
 */
export function createTestStore(options: TestStoreOptions = {}): TestStore {
  const { allowInProduction = false, tokens, ...others } = options
  if (process.env.NODE_ENV === 'production' && allowInProduction !== true) {
    throw new TypeError(
      'a store for tests loses all sessions with its process: use SessionStore in production, or set allowInProduction',
    )
  }
  if (tokens !== undefined && Object(tokens) !== tokens) {
    throw new TypeError('tokens must be an object: the options of tokens')
  }
  const clock = {
    now: Date.now(),
    pass(seconds: number) {
      clock.now += 1000 * seconds
    },
  }
  const now = () => clock.now
  const { sender, failNext, loseSubscriptions } = memorySender(new Memory(now))
  const store = new SessionStore({
    janitor: 'elsewhere',
    ...others,
    tokens: { secrets: [SECRET], ...tokens, clock: now },
    sender,
  })
  return { store, clock, failNext, loseSubscriptions }
}

interface Planned {
  readonly failure: Failure
  readonly command: string | undefined
  left: number
}

/** A sender that executes commands in memory, and what makes it fail. */
export function memorySender(memory: Memory) {
  const planned = new Set<Planned>()

  function nextFailure(commands: readonly Command[]): Failure | undefined {
    for (const plan of planned) {
      const { failure, command } = plan
      if (command !== undefined && !commands.some(([name]) => name === command)) continue
      if (--plan.left <= 0) planned.delete(plan)
      return failure
    }
    return undefined
  }

  function outcomeOf(command: Command): Outcome {
    try {
      return execute(memory, command)
    } catch (error) {
      if ((error as Error).name === 'ReplyError') return error as Error
      throw error
    }
  }

  const sender: Sender = {
    name: 'memory',
    async send({ commands }) {
      commands.forEach(check)
      const failure = nextFailure(commands)
      if (failure === 'not sent') return [new StoreError('ONETRIP_NOT_SENT', asked(failure))]
      const outcomes = failure === 'request lost' ? [] : commands.map(outcomeOf)
      return failure === undefined ? outcomes : [new Error(asked(failure))]
    },
    async close() {},
    subscribe(channels, onMessage) {
      const { promise: lost, resolve } = Promise.withResolvers<void>()
      const subscriber = {
        channels,
        onMessage,
        close() {
          memory.subscribers.delete(subscriber)
          resolve()
        },
      }
      memory.subscribers.add(subscriber)
      return { ready: Promise.resolve(), lost, close: subscriber.close }
    },
  }

  return {
    sender,
    failNext(failure: Failure, { command, times = 1 }: FailureOptions = {}): () => void {
      if (!failures.includes(failure)) {
        throw new TypeError(`failure must be one of ${failures.join(', ')}`)
      }
      if (command !== undefined) check([command])
      const plan = { failure, command, left: times }
      planned.add(plan)
      return () => void planned.delete(plan)
    },
    loseSubscriptions(): void {
      for (const { close } of memory.subscribers) close()
    },
  }
}

const asked = (failure: Failure) => `${failure}, as the test has asked for`
