import type { Command } from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import { beforeEach } from 'vitest'
import { senders } from '../../session-store/test/fixture.ts'
import { execute as executeIn } from '../src/commands.ts'
import { Memory } from '../src/memory.ts'
import { memorySender } from '../src/test-store.ts'

// In the project `memory` this replaces `@onetrip/stack/testing/redis.ts`: the same tests, without Redis.

type Entries = Record<string, string>

/** As `redisOfThisFile`, in memory. Its client has the commands of the store, and those of its tests. */
export function redisOfThisFile() {
  const memory = new Memory(Date.now)
  const { sender } = memorySender(memory)
  const execute = (command: Command) => executeIn(memory, command)
  const socket = `/memory/${senders.size}`
  senders.set(`unix://${socket}`, sender)

  const keysLike = (pattern: string) =>
    (execute(['SCAN', 0, 'MATCH', pattern]) as [string, string[]])[1]
  const fieldsOf = (key: string): Entries => {
    const flat = execute(['HGETALL', key]) as string[]
    const names = flat.filter((_, index) => index % 2 === 0)
    return Object.fromEntries(names.map((name, index) => [name, flat[2 * index + 1]])) as Entries
  }
  const contentsOf = (key: string): unknown => {
    const type = execute(['TYPE', key])
    if (type === 'hash') return fieldsOf(key)
    return type === 'zset'
      ? execute(['ZRANGE', key, 0, -1, 'WITHSCORES'])
      : [execute(['GET', key]), Number(execute(['PTTL', key])) >= 0]
  }
  const special: Record<string, (...args: string[]) => unknown> = {
    call: (...command) => execute(command as unknown as Command),
    dumpBuffer: (key = '') => Buffer.from(JSON.stringify(contentsOf(key))),
    expire: (key = '', seconds) => execute(['PEXPIRE', key, 1000 * Number(seconds)]),
    flushall: () => void keysLike('*').map((key) => execute(['DEL', key])),
    hgetall: (key = '') => fieldsOf(key),
    keys: (pattern = '*') => keysLike(pattern),
    ttl: (key = '') => Math.ceil(Number(execute(['PTTL', key])) / 1000),
    zcount: (key = '', ...range) =>
      (execute(['ZRANGE', key, ...range, 'BYSCORE']) as readonly string[]).length,
  }
  const redis = new Proxy({} as Redis, {
    get(_, name: string) {
      if (name === 'pipeline') return pipelineOf
      const run = special[name] ?? ((...args) => execute([name.toUpperCase(), ...args]))
      return async (...args: (string | object)[]) =>
        run(...args.flatMap((arg) => (typeof arg === 'object' ? Object.entries(arg).flat() : arg)))
    },
  })
  const pipelineOf = () => {
    const commands: Command[] = []
    return {
      call: (...command: Command) => commands.push(command),
      async exec() {
        const outcomes = await sender.send({ commands })
        return outcomes.map((outcome) =>
          outcome instanceof Error ? [outcome, null] : [null, outcome],
        )
      },
    }
  }
  beforeEach(() => redis.flushall())
  return { redis, socket }
}

export { dumpOf } from '../../../apps/stack/src/testing/redis.ts'
