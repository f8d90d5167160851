import type { Command, Reply } from '../command.ts'
import { StoreError } from '../errors.ts'
import {
  numberOf,
  onlyRedis,
  optionsOf,
  pairsOf,
  ReplyError,
  scanned,
  slice,
  wrongType,
} from './arguments.ts'
import { runLua, Table } from './lua.ts'

class Hash extends Map<string, string> {}
class SortedSet extends Map<string, number> {}

type Scored = readonly [member: string, score: number]

const textOf = (score: number | undefined) => (score === undefined ? null : String(score))

interface Subscriber {
  readonly channels: readonly string[]
  onMessage(message: string): void
  close(): void
}

/**
 * Redis's data model in memory, with the commands that the store uses.
 *
 * @param now Milliseconds since 1970.
 */
export function memoryRedis(now: () => number) {
  const values = new Map<string, string | Hash | SortedSet>()
  const expiries = new Map<string, number>()
  const subscribers = new Set<Subscriber>()

  function remove(key: string): boolean {
    expiries.delete(key)
    return values.delete(key)
  }

  function valueAt(key: string) {
    if (now() >= (expiries.get(key) ?? Number.POSITIVE_INFINITY)) remove(key)
    return values.get(key)
  }

  const exists = (key: string) => valueAt(key) !== undefined

  function textAt(key: string): string | undefined {
    const value = valueAt(key)
    if (value instanceof Map) throw wrongType()
    return value
  }

  function find<Kind extends Hash | SortedSet>(kind: new () => Kind, key: string): Kind {
    const value = valueAt(key) ?? new kind()
    if (value instanceof kind) return value
    throw wrongType()
  }
  const hashAt = (key: string) => find(Hash, key)
  const setAt = (key: string) => find(SortedSet, key)

  /** Changes a hash or sorted set. Returns the difference of its size. Redis has no empty ones. */
  function change<Kind extends Hash | SortedSet>(
    key: string,
    value: Kind,
    by: (value: Kind) => void,
  ): number {
    const before = value.size
    by(value)
    if (value.size > 0) values.set(key, value)
    else remove(key)
    return value.size - before
  }

  const setFields = (key: string, ...fields: string[]) =>
    change(key, hashAt(key), (hash) => {
      for (const [name, value] of pairsOf(fields)) hash.set(name, value)
    })

  const removeFrom = (key: string, value: Hash | SortedSet, names: readonly string[]) =>
    -change(key, value, () => {
      for (const name of names) value.delete(name)
    })

  const removeMembers = (key: string, members: readonly Scored[]) =>
    removeFrom(
      key,
      setAt(key),
      members.map(([member]) => member),
    )

  const del = (...keys: string[]) => keys.filter((key) => exists(key) && remove(key)).length

  const ranked = (key: string): Scored[] =>
    [...setAt(key)].sort(
      ([one, score], [other, otherScore]) =>
        score - otherScore || Buffer.compare(Buffer.from(one), Buffer.from(other)),
    )

  const within = (key: string, min: string, max: string) =>
    ranked(key).filter(([, score]) => score >= numberOf(min) && score <= numberOf(max))

  function range(key: string, from: string, to: string, ...args: string[]): string[] {
    const known = { BYSCORE: 0, REV: 0, LIMIT: 2, WITHSCORES: 0 }
    const {
      BYSCORE,
      REV,
      LIMIT: [offset = '0', count = '-1'] = [],
      ...rest
    } = optionsOf(args, known)
    const all = BYSCORE ? within(key, REV ? to : from, REV ? from : to) : ranked(key)
    if (REV) all.reverse()
    const end = numberOf(count) < 0 ? '-1' : String(numberOf(offset) + numberOf(count) - 1)
    const found = BYSCORE ? slice(all, offset, end) : slice(all, from, to)
    return found.flatMap(([member, score]) => (rest.WITHSCORES ? [member, String(score)] : member))
  }

  const commands: Record<string, (key: string, ...args: string[]) => Reply> = {
    PING: () => 'PONG',
    INFO: () => '',
    TIME: () => [String(Math.floor(now() / 1000)), String(1000 * (now() % 1000))],
    PUBLISH(channel, message = '') {
      const told = [...subscribers].filter(({ channels }) => channels.includes(channel))
      for (const { onMessage } of told) onMessage(message)
      return told.length
    },

    TYPE(key) {
      const value = valueAt(key)
      if (typeof value === 'string') return 'string'
      return value ? (value instanceof Hash ? 'hash' : 'zset') : 'none'
    },
    EXISTS: (...keys) => keys.filter(exists).length,
    DEL: del,
    UNLINK: del,
    EXPIRE(key, seconds, ...args) {
      const { GT, LT } = optionsOf(args, { GT: 0, LT: 0 })
      const before = expiries.get(key) ?? Number.POSITIVE_INFINITY
      const expiry = now() + 1000 * numberOf(seconds)
      if (!exists(key) || (GT && expiry <= before) || (LT && expiry >= before)) return 0
      expiries.set(key, expiry)
      return 1
    },
    PTTL(key) {
      if (!exists(key)) return -2
      const expiry = expiries.get(key)
      return expiry === undefined ? -1 : expiry - now()
    },
    SCAN: (_, ...args) =>
      scanned(
        [...values.keys()].filter(exists).map((key) => [key]),
        args,
      ),

    GET: (key) => textAt(key) ?? null,
    SET(key, value = '', ...args) {
      const { NX, KEEPTTL, EX, PX } = optionsOf(args, { NX: 0, KEEPTTL: 0, EX: 1, PX: 1 })
      if (NX && exists(key)) return null
      if (!KEEPTTL) expiries.delete(key)
      if (EX) expiries.set(key, now() + 1000 * numberOf(EX[0]))
      if (PX) expiries.set(key, now() + numberOf(PX[0]))
      values.set(key, value)
      return 'OK'
    },
    INCR(key) {
      const next = numberOf(textAt(key) ?? '0') + 1
      values.set(key, String(next))
      return next
    },

    HSET: setFields,
    HSETNX: (key, name = '', value = '') =>
      hashAt(key).has(name) ? 0 : setFields(key, name, value),
    HGET: (key, name = '') => hashAt(key).get(name) ?? null,
    HMGET: (key, ...names) => names.map((name) => hashAt(key).get(name) ?? null),
    HGETALL: (key) => [...hashAt(key)].flat(),
    HKEYS: (key) => [...hashAt(key).keys()],
    HLEN: (key) => hashAt(key).size,
    HEXISTS: (key, name = '') => Number(hashAt(key).has(name)),
    HDEL: (key, ...names) => removeFrom(key, hashAt(key), names),
    HSCAN: (key, _, ...args) => scanned([...hashAt(key)], args),

    ZADD(key, ...args) {
      const first = args.findIndex((arg) => !/^[A-Z]+$/.test(arg))
      const { XX } = optionsOf(args.slice(0, first), { XX: 0 })
      return change(key, setAt(key), (set) => {
        for (const [score, member] of pairsOf(args.slice(first))) {
          if (set.has(member) || !XX) set.set(member, numberOf(score))
        }
      })
    },
    ZINCRBY(key, by, member = '') {
      const score = (setAt(key).get(member) ?? 0) + numberOf(by)
      change(key, setAt(key), (set) => set.set(member, score))
      return String(score)
    },
    ZSCORE: (key, member = '') => textOf(setAt(key).get(member)),
    ZMSCORE: (key, ...members) => members.map((member) => textOf(setAt(key).get(member))),
    ZCARD: (key) => setAt(key).size,
    ZREM: (key, ...members) => removeFrom(key, setAt(key), members),
    ZRANGE: (key, from = '', to = '', ...args) => range(key, from, to, ...args),
    ZREVRANGE: (key, from = '', to = '', ...args) => range(key, from, to, 'REV', ...args),
    ZREMRANGEBYRANK: (key, from = '', to = '') => removeMembers(key, slice(ranked(key), from, to)),
    ZREMRANGEBYSCORE: (key, min = '', max = '') => removeMembers(key, within(key, min, max)),
    ZSCAN: (key, _, ...args) => scanned(pairsOf(range(key, '0', '-1', 'WITHSCORES')), args),

    EVAL(script, count, ...args) {
      const keys = numberOf(count)
      try {
        return toReply(
          runLua(script, {
            KEYS: Table.of(args.slice(0, keys)),
            ARGV: Table.of(args.slice(keys)),
            redis: Table.withNames({ call, pcall }),
          }),
        )
      } catch (error) {
        if (error instanceof ReplyError || error instanceof StoreError) throw error
        throw onlyRedis(`this script (${error})`, error)
      }
    },
  }

  function commandOf(name: string) {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!command) throw onlyRedis(`the command ${name}`)
    return command
  }

  function execute([name, ...args]: Command): Reply {
    const [key = '', ...others] = args.map(String)
    return commandOf(name)(key, ...others)
  }

  /** `redis.call` of scripts. There, nil is false, and a status is a table. */
  function call(...command: Command): unknown {
    const reply = execute(command)
    const isStatus = reply !== null && (command[0] === 'SET' || command[0] === 'TYPE')
    return isStatus ? Table.withNames({ ok: reply }) : fromReply(reply)
  }

  function pcall(...command: Command): unknown {
    try {
      return call(...command)
    } catch (error) {
      if (error instanceof ReplyError) return Table.withNames({ err: error.message })
      throw error
    }
  }

  return {
    subscribers,
    /** @throws StoreError `ONETRIP_WRONG_TYPE` for a command that is not supported. */
    check: (command: Command): void => void commandOf(command[0]),
    /** @throws As `check`, also for an option; an error named ReplyError, as Redis would reply. */
    execute,
  }
}

function fromReply(reply: Reply): unknown {
  if (reply === null) return false
  return Array.isArray(reply) ? Table.of(reply.map(fromReply)) : reply
}

function toReply(value: unknown): Reply {
  if (value === undefined || value === false) return null
  if (value === true) return 1
  if (typeof value === 'number') return Math.trunc(value)
  if (!(value instanceof Table)) return String(value)
  return value.has('ok') ? toReply(value.get('ok')) : value.list().map(toReply)
}
