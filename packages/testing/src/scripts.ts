import type { Reply } from '@onetrip/session-store'
import { type Memory, pairsOf } from './memory.ts'

/** Enough for the positions that a script reads. */
type Texts = readonly [string, string, string, string, ...string[]]

/** Removes a session, as the ends of the scripts do, and publishes that. */
function end(
  memory: Memory,
  [login, recent]: readonly [string, string],
  id: string,
  records: string[],
) {
  memory.hash(login).delete(id)
  memory.sorted(recent).delete(id)
  memory.remove(...records)
  memory.publish(login, id)
}

/** The scripts of the store and of `@onetrip/express-session`, written a second time. Their texts say what each does. */
export const scripts: Record<string, (memory: Memory, keys: Texts, args: Texts) => Reply> = {
  'write data'(memory, [login, recent, data], [text]) {
    const { id, now, idleBefore, mode, ifVersion, maxFields, removed, set } = JSON.parse(text)
    const exists = memory.hash(login).has(id) && (memory.sorted(recent).get(id) ?? 0) >= idleBefore
    if (!exists) return 'gone'
    const stored = memory.hash(data)
    const version = stored.get('') ?? '0'
    if (ifVersion !== undefined && ifVersion !== version) return 'conflict'
    const pairs = pairsOf(set)
    if (mode === 'patch') {
      const others = ['', '\0', ...removed] // the version, the label
      const names = new Set([...stored.keys()].filter((name) => !others.includes(name)))
      const before = names.size
      for (const [name] of pairs) names.add(name)
      if (names.size > Math.max(before, maxFields)) return 'full'
      for (const name of removed) stored.delete(name)
    } else stored.clear()
    for (const [name, json] of pairs) stored.set(name, json)
    const next = Number(version) + 1
    stored.set('', String(next))
    memory.sorted(recent).set(id, Number(now))
    return next
  },

  'take records'(memory, [login, recent, viewed, data], [id, user]) {
    const owner = memory.hash(login).get(id)
    if (owner !== '' && owner !== user) return null
    const views = memory.ranked(viewed).flatMap(([item, score]) => [item, String(score)])
    const records = [views, [...memory.hash(data)].flat(), owner]
    end(memory, [login, recent], id, [viewed, data])
    return records
  },

  'count once'(memory, [popular, marker, login], [item, seconds, id]) {
    const user = memory.hash(login).get(id)
    let count = memory.text(marker)
    if (user !== undefined && count === undefined) {
      count = String(memory.increment(popular, item, -1))
      memory.put(marker, count, 1000 * Number(seconds))
    }
    return [user ?? null, count ?? null]
  },

  'end sessions'(memory, [login, recent, ...records], [text]) {
    const { ids, settledBefore, oldest } = JSON.parse(text)
    const scores = memory.sorted(recent)
    let surplus = scores.size - (oldest?.keep ?? 0)
    const isDue = (owner: string | undefined, score: number | undefined, index: number) => {
      if (settledBefore === undefined) return true
      const isSettled = owner !== undefined || (score ?? 0) < settledBefore
      if (!isSettled || !oldest) return isSettled && (owner === undefined || score === undefined)
      return score === oldest.seen[index] && (Number(score) < oldest.idleBefore || surplus > 0)
    }
    return ids.map((id: string, index: number) => {
      const owner = memory.hash(login).get(id)
      if (!isDue(owner, scores.get(id), index)) return null
      surplus--
      end(memory, [login, recent], id, records.slice(2 * index, 2 * index + 2))
      return owner ?? (settledBefore === undefined ? null : '')
    })
  },

  'add to list'(memory, [list], [time, id]) {
    let newest = 0
    for (const score of memory.sorted(list).values()) newest = Math.max(newest, score)
    const score = newest > Number(time) ? Math.round(1000 * newest + 1) / 1000 : Number(time)
    const isNew = !memory.sorted(list).has(id)
    memory.sorted(list).set(id, score)
    return Number(isNew)
  },

  'halve counts'(memory, [popular], items) {
    const counts = memory.sorted(popular)
    const halved = items.filter((item) => (counts.get(item) ?? 0) <= -2)
    const gone = items.filter((item) => !halved.includes(item) && counts.delete(item))
    for (const item of halved) counts.set(item, Math.ceil((counts.get(item) ?? 0) / 2))
    return [halved.length, gone.length]
  },

  'read time': ({ now }) => [String(Math.floor(now / 1000)), String(1000 * (now % 1000))],

  'hold lock'(memory, [key], [owner, lifetimeMs]) {
    if ((memory.text(key) ?? owner) !== owner) return 0
    memory.put(key, owner, Number(lifetimeMs))
    return 1
  },

  'release lock': (memory, [key], [owner]) => (memory.text(key) === owner ? memory.remove(key) : 0),

  'begin task'(memory, [key], [task, now, everySeconds, maxAhead]) {
    const tasks = memory.hash(key)
    const begun = tasks.get(task)
    const age = Number(now) - Number(begun ?? Number.NaN)
    if (age < Number(everySeconds) && age >= -Number(maxAhead)) return 0
    tasks.set(task, now)
    return begun === undefined ? 2 : 1
  },
  'save session'(memory, [key], [text, ...pairs]) {
    const { create, ms, cookie, user, userWas, isListed } = JSON.parse(text)
    const session = memory.hash(key)
    const before = session.get('')
    if (before === '' || (!create && session.size === 0)) return 'gone'
    if (userWas !== undefined && userWas !== (before ?? '')) return 'gone'
    if (user && user !== before && !isListed) return 'unlisted'
    const isMine = cookie === undefined || cookie === session.get('cookie')
    const given = new Map([...pairsOf(pairs), ...(user ? [['', user] as const] : [])])
    for (const [name, json] of given) {
      if (json === '') session.delete(name)
      else if (isMine || name !== 'cookie') session.set(name, json)
    }
    if (user === '') session.delete('')
    for (const name of create ? [...session.keys()] : []) {
      if (name !== '' && !given.has(name)) session.delete(name)
    }
    if (isMine && ms) memory.expire(key, ms)
    return 'written'
  },

  'end session'(memory, keys, [seconds, owner]) {
    const [key] = keys
    const session = memory.hash(key)
    const user = session.get('')
    if (owner !== '' && owner !== user) return null
    const exists = session.size > 0 && user !== ''
    memory.remove(...keys)
    memory.hash(key).set('', '')
    memory.expire(key, 1000 * Number(seconds))
    return exists ? (user ?? '') : null
  },

  'move session'(memory, [key, old], [text, ms, ...pairs]) {
    if (memory.at(key) !== undefined || memory.text(old) !== text) return null
    for (const [name, json] of pairsOf(pairs)) memory.hash(key).set(name, json)
    const left = memory.expiryOf(old) - memory.now
    memory.expire(key, Number.isFinite(left) ? left : Number(ms))
    memory.remove(old)
    return null
  },

  'forget sessions'(memory, [list], entries) {
    const scores = memory.sorted(list)
    for (const [id, score] of pairsOf(entries)) {
      if (String(scores.get(id)) === score) scores.delete(id)
    }
    return null
  },
}
