import type { Redis } from 'ioredis'
import type { Command, Operation, Reply } from '../src/command.ts'
import { sendPipeline } from '../src/redis/write-frame.ts'

/** All orders in which the steps of two callers can happen; each caller's own order is kept. */
export function* interleavings(first: number, second: number): Generator<(0 | 1)[]> {
  if (first === 0 && second === 0) yield []
  if (first > 0) for (const rest of interleavings(first - 1, second)) yield [0, ...rest]
  if (second > 0) for (const rest of interleavings(first, second - 1)) yield [1, ...rest]
}

/** Runs two operations with their commands in one of these orders, as one pipeline. */
export async function inOrder<A, B>(
  redis: Redis,
  order: (0 | 1)[],
  [one, two]: [Operation<A>, Operation<B>],
): Promise<[A, B]> {
  const left: [Command[], Command[]] = [[...one.commands], [...two.commands]]
  const commands = order.map((which) => left[which].shift() as Command)
  const outcomes = await sendPipeline(redis, commands)
  const repliesTo = (which: 0 | 1) =>
    outcomes.filter((_, index) => order[index] === which) as readonly Reply[]
  return [one.read(repliesTo(0)), two.read(repliesTo(1))]
}

/** The operations of one caller, one after the other; each gets the result of the one before. */
export type Caller = Generator<Operation<unknown>, void, unknown>

/** Sends one command of an operation at a time, so that commands of other callers can come in between. */
export class Running {
  readonly #redis: Redis
  readonly #caller: Caller
  #operation: Operation<unknown> | undefined
  #commands: Command[] = []
  #replies: Reply[] = []

  constructor(redis: Redis, caller: Caller) {
    this.#redis = redis
    this.#caller = caller
    this.#next(undefined)
  }

  get done(): boolean {
    return this.#operation === undefined
  }

  async step(): Promise<void> {
    const [name = '', ...args] = this.#commands.shift() ?? []
    this.#replies.push((await this.#redis.call(String(name), ...args)) as Reply)
    if (this.#commands.length === 0) this.#next(this.#operation?.read(this.#replies))
  }

  #next(result: unknown): void {
    const { done, value } = this.#caller.next(result)
    this.#operation = done ? undefined : value
    this.#commands = [...(this.#operation?.commands ?? [])]
    this.#replies = []
    // Nothing to send.
    if (this.#operation && this.#commands.length === 0) this.#next(undefined)
  }
}
