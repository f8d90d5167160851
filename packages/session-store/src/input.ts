import { StoreError } from './errors.ts'
import { outOfRange, type Range } from './range.ts'
import type { Command, Update } from './updates.ts'

/** The longest user or item, in characters (Unicode code points). */
export const MAX_NAME_LENGTH = 128

/**
 * What a user or item consists of, as the source of a regular expression with the `u` flag: no control
 * characters, none that reverse the direction of text (they make a list show something else than it
 * holds), no halves of surrogate pairs (which UTF-8 cannot carry), and no U+FFFD (which is what decoders
 * make of bytes that are no UTF-8). Without \p{…}, which not every reader of a JSON Schema knows.
 */
export const NAME_PATTERN =
  '^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufffd]+$'

const namePattern = new RegExp(NAME_PATTERN, 'u')

const invalid = (message: string) => new StoreError('ONETRIP_INVALID_INPUT', message)

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkName(field: string, value: string): void {
  if (typeof value !== 'string') throw invalid(`${field} must be a string`)
  // A string has at least as many UTF-16 units as characters, so most need no counting.
  const tooLong = value.length > MAX_NAME_LENGTH && [...value].length > MAX_NAME_LENGTH
  if (tooLong || !namePattern.test(value)) {
    throw invalid(`${field} must have 1 to ${MAX_NAME_LENGTH} characters and no control characters`)
  }
}

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkString(field: string, value: string): void {
  if (typeof value !== 'string') throw invalid(`${field} must be a string`)
}

/** The longest key of a view that may be repeated, in characters. */
export const MAX_KEY_LENGTH = 255

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless it can be an idempotency key. */
export function checkKey(value: string): void {
  if (typeof value === 'string' && value.length >= 1 && value.length <= MAX_KEY_LENGTH) return
  throw invalid(`idempotencyKey must be a string of 1 to ${MAX_KEY_LENGTH} characters`)
}

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless it is a list of strings, at least one. */
export function checkStrings(field: string, values: readonly string[]): void {
  const isList = Array.isArray(values) && values.length > 0
  // Not every(), which skips the holes of a sparse list.
  if (!isList || [...values].some((value) => typeof value !== 'string')) {
    throw invalid(`${field} must be a list of one or more strings`)
  }
}

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkNumber(field: string, value: number, range: Range): void {
  const wrong = outOfRange(field, value, range)
  if (wrong) throw invalid(wrong)
}

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless it is a whole number from 1 to `most`. */
export function checkLimit(limit: number, most = 1_000): void {
  checkNumber('limit', limit, { least: 1, most, whole: true })
}

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkBoolean(field: string, value: boolean): void {
  if (typeof value !== 'boolean') throw invalid(`${field} must be true or false`)
}

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkObject(field: string, value: object): void {
  if (typeof value !== 'object' || value === null) throw invalid(`${field} must be an object`)
}

/** Others share the connection: these would keep them waiting, or change what their commands do. */
const UNSHARED = new Set(
  'ASKING AUTH BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT DEBUG DISCARD EXEC FAILOVER HELLO MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY READWRITE REPLCONF RESET SELECT SHUTDOWN SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH'.split(
    ' ',
  ),
)

const isBlock = (argument: Command[number]) => String(argument).toUpperCase() === 'BLOCK'

const isArgument = (value: unknown) =>
  typeof value === 'string' || (typeof value === 'number' && !Number.isNaN(value))

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless it is an update that others are not hurt by. */
export function checkUpdate({ commands, read }: Update<unknown>): void {
  if (!Array.isArray(commands) || commands.length === 0) {
    throw invalid('commands must be a list of one or more commands')
  }
  for (const command of commands as readonly Command[]) {
    if (!Array.isArray(command) || command.length === 0 || ![...command].every(isArgument)) {
      throw invalid('a command must be a list of strings and numbers, its name first')
    }
    const name = String(command[0]).toUpperCase()
    const blocks = name.startsWith('XREAD') && command.some(isBlock)
    if (blocks || UNSHARED.has(name)) {
      throw invalid(`${name} cannot be sent over a shared connection`)
    }
  }
  if (typeof read !== 'function') throw invalid('read must be a function')
}

/** A day, in milliseconds. Node's timers end at 24.8 days, and fire at once beyond. */
export const MAX_TIMEOUT_MS = 86_400_000

/** @throws TypeError unless they are an object. */
export function checkOptions(what: string, options: unknown): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`the options of ${what} must be an object`)
  }
}

/** @throws TypeError when one of these is not a function of `object`. */
export function checkFunctions(what: string, object: unknown, names: readonly string[]): void {
  const functions = (object ?? {}) as Record<string, unknown>
  const missing = names.filter((name) => typeof functions[name] !== 'function')
  if (missing.length > 0) throw new TypeError(`${what} needs the functions ${missing.join(', ')}`)
}
