import { StoreError } from '@onetrip/session-store'
import type { Fields, StoredSession } from './options.ts'

const MAX_FIELDS = 10_000
const MAX_FIELD_BYTES = 8 * 1024 ** 2
const MAX_WRITE_BYTES = 32 * 1024 ** 2

/** A session in Redis. */
export interface Loaded {
  session: StoredSession
  /** `''` for none. */
  user: string
}

export const invalid = (message: string) => new StoreError('ONETRIP_INVALID_INPUT', message)

/** Converts a flat reply: name, value, name, … */
export const inPairs = (flat: readonly unknown[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    String(flat[2 * index + 1]),
  ])

/** Reads the reply to HGETALL: a list of names and texts, or an object in RESP3. Undefined if the session has ended. */
export function decoded(reply: unknown): Loaded | undefined {
  const pairs = Array.isArray(reply)
    ? inPairs(reply)
    : Object.entries(reply as Record<string, string>)
  const user = pairs.find(([name]) => name === '')?.[1] ?? ''
  const fields = pairs.filter(([name]) => name !== '')
  if (fields.length === 0) return undefined
  const session = Object.fromEntries(
    fields.map(([name, text]) => [name, parsed(text, `the field ${quoted(name)} of a session`)]),
  )
  return { session, user }
}

/** A name for an error message. */
const quoted = (name: string) => JSON.stringify(name.slice(0, 128))

/** @throws StoreError `ONETRIP_UNREADABLE_DATA`: another program wrote it. */
function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new StoreError('ONETRIP_UNREADABLE_DATA', `${what} is not JSON`)
  }
}

/** Parses the text of connect-redis. @throws StoreError `ONETRIP_UNREADABLE_DATA` */
export function parsedSession(text: string): StoredSession {
  const session = parsed(text, 'a session of connect-redis')
  if (typeof session === 'object' && session !== null && !Array.isArray(session)) {
    return session as StoredSession
  }
  throw new StoreError('ONETRIP_UNREADABLE_DATA', 'a session of connect-redis is not an object')
}

/** Name, JSON text, name, …; the text of an undefined field is empty. */
export function textsOf(fields: Fields): string[] {
  const entries = Object.entries(fields)
  if (entries.length > MAX_FIELDS) throw invalid(`a session can have ${MAX_FIELDS} fields`)
  let bytes = 0
  return entries.flatMap(([name, value]) => {
    const text = value === undefined ? '' : JSON.stringify(value)
    const size = Buffer.byteLength(text)
    bytes += size
    if (name === '' || !name.isWellFormed()) throw invalid('a field of a session needs a name')
    if (size > MAX_FIELD_BYTES) {
      throw invalid(
        `the session field ${quoted(name)} has ${size} bytes; the maximum is ${MAX_FIELD_BYTES}`,
      )
    }
    if (bytes > MAX_WRITE_BYTES) {
      throw invalid(`the session has more than ${MAX_WRITE_BYTES} bytes`)
    }
    return [name, text]
  })
}

/** The session as plain JSON values: the framework's cookie is an object with `toJSON`. */
export const plain = (session: unknown): StoredSession => JSON.parse(JSON.stringify(session))
