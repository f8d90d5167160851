import { type Command, type Reply, StoreError } from '@onetrip/session-store'
import { Hash, type Memory, pairsOf, refused, type SortedSet } from './memory.ts'
import { scripts } from './scripts.ts'

const onlyRedis = (what: string) =>
  new StoreError(
    'ONETRIP_WRONG_TYPE',
    `the store for tests does not support ${what}: use a real Redis for this test`,
  )

function numberOf(text: string): number {
  const number = Number(text.replace(/^([+-])inf$/, '$1Infinity') || Number.NaN)
  if (Number.isNaN(number)) throw refused('ERR value is not a valid number')
  return number
}

/** @param known The options of the command, each with the number of its arguments. */
function optionsOf(args: readonly string[], known: Record<string, number>) {
  const options: Record<string, readonly string[]> = {}
  for (let at = 0; at < args.length; ) {
    const name = String(args[at++])
    const count = known[name]
    if (count === undefined) throw onlyRedis(`the option ${name}`)
    options[name] = args.slice(at, at + count)
    at += count
  }
  return options
}

const textOf = (score: number | undefined) => (score === undefined ? null : String(score))

/** The elements from one position to another; negative positions count from the end. */
function slice<Item>(all: readonly Item[], from: string, to: string): Item[] {
  const place = (text: string) => numberOf(text) + (numberOf(text) < 0 ? all.length : 0)
  return all.slice(Math.max(0, place(from)), Math.max(0, place(to) + 1))
}

/** The pattern of a MATCH, without classes of characters. */
const patternOf = (glob: string) =>
  new RegExp(
    `^${glob.replace(/\\(.)|./gs, (found, escaped?: string) => {
      if (found === '*') return '.*'
      return found === '?' ? '.' : (escaped ?? found).replace(/\W/gu, '\\$&')
    })}$`,
    's',
  )

function typeOf(memory: Memory, key: string): string {
  const value = memory.at(key)
  if (value instanceof Map) return value instanceof Hash ? 'hash' : 'zset'
  return value === undefined ? 'none' : 'string'
}

/** All entries at once: the cursor of the reply is 0. */
function scanned(entries: readonly (readonly string[])[], args: readonly string[]): Reply {
  const { MATCH: [match = '*'] = [] } = optionsOf(args, { MATCH: 1, COUNT: 1 })
  const pattern = patternOf(match)
  return ['0', entries.filter(([name = '']) => pattern.test(name)).flat()]
}

/** The second copy of a script. Each script of the store begins with its name, as a comment. */
function scriptOf(text: string) {
  const name = /^-- (.+)/m.exec(text)?.[1] ?? ''
  if (!Object.hasOwn(scripts, name)) throw onlyRedis(`this script: ${text.slice(0, 100)}`)
  return scripts[name]
}

const within = (memory: Memory, key: string, min: string, max: string) =>
  memory.ranked(key).filter(([, score]) => score >= numberOf(min) && score <= numberOf(max))

function range(memory: Memory, key: string, from: string, to: string, ...args: string[]): Reply {
  const known = { BYSCORE: 0, REV: 0, LIMIT: 2, WITHSCORES: 0 }
  const { BYSCORE, REV, LIMIT, WITHSCORES } = optionsOf(args, known)
  const [min, max] = REV ? [to, from] : [from, to]
  const all = BYSCORE ? within(memory, key, min, max) : memory.ranked(key)
  if (REV) all.reverse()
  const [offset, count] = (LIMIT ?? [0, -1]).map(Number) as [number, number]
  const limited = all.slice(offset, count < 0 ? undefined : offset + count)
  const found = BYSCORE ? limited : slice(all, from, to)
  return found.flatMap(([member, score]) => (WITHSCORES ? [member, String(score)] : member))
}

/** Returns how many of these names it removed. */
const removeFrom = (value: Hash | SortedSet, names: readonly string[]) =>
  names.filter((name) => value.delete(name)).length

const removeMembers = (
  memory: Memory,
  key: string,
  members: readonly (readonly [string, number])[],
) =>
  removeFrom(
    memory.sorted(key),
    members.map(([member]) => member),
  )

type Run = (memory: Memory, key: string, ...args: string[]) => Reply | undefined

/** The commands of the store and of its tests. Undefined is nil. */
const commands: Record<string, Run> = {
  PING: () => 'PONG',
  INFO: () => '',
  PUBLISH: (memory, channel, message = '') => memory.publish(channel, message),

  TYPE: typeOf,
  EXISTS: (memory, ...keys) => keys.filter((key) => memory.at(key) !== undefined).length,
  DEL: (memory, ...keys) => memory.remove(...keys),
  UNLINK: (memory, ...keys) => memory.remove(...keys),
  PTTL(memory, key) {
    if (memory.at(key) === undefined) return -2
    const left = memory.expiryOf(key) - memory.now
    return Number.isFinite(left) ? left : -1
  },
  PEXPIRE(memory, key, ms = '', only = '') {
    const [before, next] = [memory.expiryOf(key), memory.now + numberOf(ms)]
    const refuses = only === 'NX' ? Number.isFinite(before) : only === 'GT' && next <= before
    if (memory.at(key) === undefined || refuses) return 0
    memory.expire(key, numberOf(ms))
    return 1
  },
  SCAN(memory, _, ...args) {
    const { TYPE: [type] = [], ...others } = optionsOf(args, { MATCH: 1, COUNT: 1, TYPE: 1 })
    const found = memory.keys().filter((key) => type === undefined || typeOf(memory, key) === type)
    return scanned(
      found.map((key) => [key]),
      Object.entries(others).flatMap(([name, values]) => [name, ...values]),
    )
  },

  GET: (memory, key) => memory.text(key),
  SET(memory, key, value = '', ...args) {
    const { NX, EX: [seconds = '+inf'] = [] } = optionsOf(args, { NX: 0, EX: 1 })
    if (NX && memory.at(key) !== undefined) return null
    memory.put(key, value, 1000 * numberOf(seconds))
    return 'OK'
  },
  INCR(memory, key) {
    const next = numberOf(memory.text(key) ?? '0') + 1
    memory.put(key, String(next))
    return next
  },

  HSET(memory, key, ...fields) {
    const hash = memory.hash(key)
    const before = hash.size
    for (const [name, value] of pairsOf(fields)) hash.set(name, value)
    return hash.size - before
  },
  HGET: (memory, key, name = '') => memory.hash(key).get(name),
  HMGET: (memory, key, ...names) => names.map((name) => memory.hash(key).get(name) ?? null),
  HGETALL: (memory, key) => [...memory.hash(key)].flat(),
  HLEN: (memory, key) => memory.hash(key).size,
  HEXISTS: (memory, key, name = '') => Number(memory.hash(key).has(name)),
  HDEL: (memory, key, ...names) => removeFrom(memory.hash(key), names),
  HSCAN: (memory, key, _, ...args) => scanned([...memory.hash(key)], args),

  ZADD(memory, key, ...args) {
    const first = args.findIndex((arg) => !/^[A-Z]+$/.test(arg))
    const { XX } = optionsOf(args.slice(0, first), { XX: 0 })
    const scores = memory.sorted(key)
    const before = scores.size
    for (const [score, member] of pairsOf(args.slice(first))) {
      if (scores.has(member) || !XX) scores.set(member, numberOf(score))
    }
    return scores.size - before
  },
  ZINCRBY: (memory, key, by = '', member = '') =>
    String(memory.increment(key, member, numberOf(by))),
  ZSCORE: (memory, key, member = '') => textOf(memory.sorted(key).get(member)),
  ZMSCORE: (memory, key, ...members) =>
    members.map((member) => textOf(memory.sorted(key).get(member))),
  ZCARD: (memory, key) => memory.sorted(key).size,
  ZREM: (memory, key, ...members) => removeFrom(memory.sorted(key), members),
  ZRANGE: (memory, key, from = '', to = '', ...args) => range(memory, key, from, to, ...args),
  ZREVRANGE: (memory, key, from = '', to = '', ...args) =>
    range(memory, key, from, to, 'REV', ...args),
  ZREMRANGEBYRANK: (memory, key, from = '', to = '') =>
    removeMembers(memory, key, slice(memory.ranked(key), from, to)),
  ZREMRANGEBYSCORE: (memory, key, min = '', max = '') =>
    removeMembers(memory, key, within(memory, key, min, max)),
  ZSCAN: (memory, key, _, ...args) =>
    scanned(pairsOf(range(memory, key, '0', '-1', 'WITHSCORES') as string[]), args),

  EVAL(memory, text, count = '', ...args) {
    const keys = numberOf(count)
    return scriptOf(text)?.(memory, args.slice(0, keys) as never, args.slice(keys) as never)
  },
}

/** @throws StoreError `ONETRIP_WRONG_TYPE` for a command or script that is not supported. */
export function check([name, text]: Command): void {
  if (!Object.hasOwn(commands, name)) throw onlyRedis(`the command ${name}`)
  if (name === 'EVAL') scriptOf(String(text))
}

/** @throws As `check`, also for an option; an error named ReplyError, as Redis would reply. */
export function execute(memory: Memory, command: Command): Reply {
  check(command)
  const [name = '', key = '', ...args] = command.map(String)
  return commands[name]?.(memory, key, ...args) ?? null
}
