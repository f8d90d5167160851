import { type Command, type Outcome, type Sender, StoreError } from '@onetrip/session-store'
import { execute } from '../../src/commands.ts'
import { Memory } from '../../src/memory.ts'
import type { Random, Time } from './world.ts'

/** A Redis in memory. It executes one command at a time, and may hang. */
export class Server {
  readonly memory: Memory
  /** Executes nothing until then. */
  hangsUntil = 0

  constructor(time: Time) {
    this.memory = new Memory(() => time.now)
  }

  run(command: Command): Outcome {
    try {
      return execute(this.memory, command)
    } catch (error) {
      if ((error as Error).name === 'ReplyError') return error as Error
      throw error
    }
  }
}

interface Sent {
  readonly commands: readonly Command[]
  readonly outcomes: Outcome[]
  /** Undefined once the connection is cut: Redis executes the commands, and nobody reads the replies. */
  settle: ((outcomes: readonly Outcome[] | Error) => void) | undefined
}

/**
 * The connection of one process. Commands of an operation are executed in order, those of other processes may come
 * between any two of them. When the connection is cut, a part of what was sent still arrives.
 */
export class Connection {
  readonly sender: Sender
  readonly #time: Time
  readonly #random: Random
  readonly #server: Server
  #queue: Sent[] = []
  /** Executed, and the reply is on its way. */
  readonly #replying = new Set<Sent>()
  #running = false
  #downUntil = 0
  /** How long the connection is down after the cut that comes with the next command. */
  #cutNextMs: number | undefined
  readonly #subscriptions = new Set<() => void>()

  constructor(time: Time, random: Random, server: Server) {
    this.#time = time
    this.#random = random
    this.#server = server
    this.sender = {
      name: 'simulated',
      send: ({ commands }) => this.#send(commands),
      close: async () => {},
      subscribe: (channels, onMessage) => this.#subscribe(channels, onMessage),
    }
  }

  get isDown(): boolean {
    return this.#time.now < this.#downUntil
  }

  /** Cuts the connection: all replies after a random one are lost, and Redis gets the commands before a random one. */
  cut(downMs: number): void {
    this.#downUntil = Math.max(this.#downUntil, this.#time.now + downMs)
    const kept = this.#random.below(this.#queue.length + 1)
    const lost = [...this.#replying, ...this.#queue].map(({ settle, outcomes, commands }) => {
      const read = outcomes.slice(0, this.#random.below(outcomes.length + 1))
      const error = new Error('the connection was cut')
      const some = read.length < commands.length ? [...read, error] : read
      return () => settle?.(this.#random.chance(0.5) ? some : error)
    })
    for (const sent of this.#replying) sent.settle = undefined
    this.#queue.forEach((sent, index) => {
      sent.settle = undefined
      if (index < kept) return
      // The one at the cut may arrive in part.
      const left = index === kept ? this.#random.below(sent.commands.length + 1) : 0
      Object.assign(sent, { commands: sent.commands.slice(0, sent.outcomes.length + left) })
    })
    for (const settle of lost) settle()
    for (const close of this.#subscriptions) close()
  }

  /** Cuts the connection while one of the next commands is on it. */
  cutInFlight(downMs: number): void {
    this.#cutNextMs = downMs
  }

  /** No more cuts. */
  heal(): void {
    this.#cutNextMs = undefined
  }

  async #send(commands: readonly Command[]): Promise<readonly Outcome[]> {
    if (this.isDown) return [new StoreError('ONETRIP_NOT_SENT', 'there is no connection')]
    return await new Promise((resolve, reject) => {
      this.#queue.push({
        commands,
        outcomes: [],
        settle: (result) => (result instanceof Error ? reject(result) : resolve(result)),
      })
      if (!this.#running) this.#continue(this.#random.exponential(1))
    })
  }

  /** Executes the next commands after this time. */
  #continue(ms: number): void {
    this.#running = true
    const from = Math.max(this.#time.now, this.#server.hangsUntil)
    this.#time.at(from + ms, () => this.#execute())
  }

  #execute(): void {
    if (this.#time.now < this.#server.hangsUntil) {
      this.#continue(0)
      return
    }
    const [sent] = this.#queue
    if (!sent) {
      this.#running = false
      return
    }
    // Some commands run at once; then another process may come in between.
    do {
      const command = sent.commands[sent.outcomes.length]
      if (command) sent.outcomes.push(this.#server.run(command))
    } while (sent.outcomes.length < sent.commands.length && this.#random.chance(0.6))
    if (sent.outcomes.length >= sent.commands.length) {
      this.#queue.shift()
      this.#reply(sent)
    }
    const downMs = this.#cutNextMs
    if (downMs !== undefined && this.#random.chance(0.5)) {
      this.#cutNextMs = undefined
      this.cut(downMs)
    }
    this.#continue(this.#random.exponential(0.5))
  }

  #reply(sent: Sent): void {
    this.#replying.add(sent)
    this.#time.at(this.#time.now + this.#random.exponential(1), () => {
      this.#replying.delete(sent)
      sent.settle?.(sent.outcomes)
    })
  }

  #subscribe(channels: readonly string[], onMessage: (message: string) => void) {
    const { promise: lost, resolve } = Promise.withResolvers<void>()
    const { memory } = this.#server
    const subscriber = {
      channels,
      onMessage: (message: string) =>
        this.#time.at(this.#time.now + this.#random.exponential(1), () => {
          if (memory.subscribers.has(subscriber)) onMessage(message)
        }),
      close: () => {
        memory.subscribers.delete(subscriber)
        this.#subscriptions.delete(subscriber.close)
        resolve()
      },
    }
    this.#subscriptions.add(subscriber.close)
    const up = async () => {
      if (this.isDown) throw new Error('there is no connection')
    }
    const ready = up().then(
      () => void memory.subscribers.add(subscriber),
      (error) => {
        subscriber.close()
        throw error
      },
    )
    ready.catch(() => {})
    return { ready, lost, ping: up, close: subscriber.close }
  }
}
