import { setImmediate } from 'node:timers/promises'
import type { Command, Reply } from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import type { CommandRunner } from '../src/express.ts'

interface Waiting {
  caller: number
  send: () => Promise<void>
}

/** Runs callers together and sends one command at a time, so that those of others can come in between. */
export class CommandsInTurn {
  readonly #redis: Redis
  readonly #waiting: Waiting[] = []

  constructor(redis: Redis) {
    this.#redis = redis
  }

  /** A store for one caller. */
  storeFor(caller: number): CommandRunner {
    return {
      run: async ({ commands, read }) => {
        const replies: Reply[] = []
        for (const command of commands) replies.push(await this.#inTurn(caller, command))
        return read(replies)
      },
    }
  }

  #inTurn(caller: number, [name, ...args]: Command): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const send = async () => {
      const reply = this.#redis.call(name, ...args) as Promise<Reply>
      await reply.then(resolve, reject)
    }
    this.#waiting.push({ caller, send })
    return promise
  }

  /** @param pick Which of the waiting commands is next. Called with their callers. */
  async finish(
    calls: Promise<unknown>[],
    pick: (callers: number[]) => number | Promise<number>,
  ): Promise<void> {
    let isDone = false
    const results = Promise.all(calls).finally(() => {
      isDone = true
    })
    results.catch(() => undefined) // awaited below
    const errors: unknown[] = []
    for (;;) {
      await setImmediate() // a caller queues its next command without waiting for anything else
      const callers = this.#waiting.map(({ caller }) => caller)
      if (callers.length === 0) {
        if (isDone) break
        throw new Error('a caller waits for something else than its commands')
      }
      const place = await Promise.resolve(callers)
        .then(pick)
        .catch((error: unknown) => {
          errors.push(error) // the calls must end before the store can be closed
          return 0
        })
      const [next] = this.#waiting.splice(place, 1)
      await next?.send()
    }
    await results
    if (errors.length > 0) throw errors[0]
  }
}
