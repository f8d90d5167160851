import type { Command, Operation } from './command.ts'
import { StoreError } from './errors.ts'
import { removedOptions } from './removed-options.ts'

/** The longest user or item, in characters (Unicode code points). */
export const MAX_NAME_LENGTH = 128

/**
 * The characters allowed in a user or item, as the source of a regular expression with the `u` flag. Not
 * allowed: control characters; characters that change the direction of text (they can make a list misleading);
 * lone surrogates (invalid in UTF-8); U+FFFD (decoders put it in place of invalid UTF-8). It does not use
 * \p{…}, which some JSON Schema validators do not support.
 */
export const NAME_PATTERN =
  '^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufffd]+$'

const namePattern = new RegExp(NAME_PATTERN, 'u')

const invalid = (message: string) => new StoreError('ONETRIP_INVALID_INPUT', message)

export const wrongType = (message: string) => new StoreError('ONETRIP_WRONG_TYPE', message)

/** @throws StoreError `ONETRIP_WRONG_TYPE` or `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkName(field: string, value: string): void {
  checkType(field, value, 'string')
  // Count code points only if needed: a string never has more of them than UTF-16 units.
  const tooLong = value.length > MAX_NAME_LENGTH && [...value].length > MAX_NAME_LENGTH
  if (tooLong || !namePattern.test(value)) {
    throw invalid(`${field} must have 1 to ${MAX_NAME_LENGTH} characters and no control characters`)
  }
}

const typeNames = {
  string: 'a string',
  boolean: 'true or false',
  object: 'an object',
  function: 'a function',
}

/** @throws StoreError `ONETRIP_WRONG_TYPE`, naming the field. */
export function checkType(field: string, value: unknown, type: keyof typeof typeNames): void {
  if (typeof value !== type || value === null)
    throw wrongType(`${field} must be ${typeNames[type]}`)
}

/** The longest label of a login, in bytes (UTF-8). */
const MAX_LABEL_BYTES = 200

/** @throws StoreError as `checkName`, unless the value is a valid label, or empty: no label. */
export function checkLabel(value: string): void {
  checkType('label', value, 'string')
  if (value === '') return
  if (Buffer.byteLength(value) > MAX_LABEL_BYTES || !namePattern.test(value)) {
    throw invalid(`label must have at most ${MAX_LABEL_BYTES} bytes and no control characters`)
  }
}

/** The longest idempotency key, in characters. */
const MAX_KEY_LENGTH = 255

/** @throws StoreError as `checkName`, unless the value is a valid idempotency key. */
export function checkKey(value: string): void {
  checkType('idempotencyKey', value, 'string')
  if (value.length >= 1 && value.length <= MAX_KEY_LENGTH) return
  throw invalid(`idempotencyKey must have 1 to ${MAX_KEY_LENGTH} characters`)
}

/** @throws StoreError as `checkName`, unless the value is a list of one or more strings. */
export function checkStrings(field: string, values: readonly string[]): void {
  // Not every(), which skips the holes of a sparse list.
  if (!Array.isArray(values) || [...values].some((value) => typeof value !== 'string')) {
    throw wrongType(`${field} must be a list of strings`)
  }
  if (values.length === 0) throw invalid(`${field} must have at least one string`)
}

/** @throws StoreError `ONETRIP_WRONG_TYPE` or `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkNumber(field: string, value: number, range: Range): void {
  const wrong = outOfRange(field, value, range)
  if (wrong) throw typeof value === 'number' ? invalid(wrong) : wrongType(wrong)
}

/** @throws StoreError as `checkNumber`, unless the value is a whole number from 1 to 1,000. */
export function checkLimit(limit: number): void {
  checkNumber('limit', limit, { min: 1, max: 1_000, integer: true })
}

/** Not allowed on a shared connection: they block it, or change its state for other callers. */
const FORBIDDEN_COMMANDS = new Set(
  'ASKING AUTH BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT DEBUG DISCARD EXEC FAILOVER HELLO MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY READWRITE REPLCONF RESET SELECT SHUTDOWN SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH'.split(
    ' ',
  ),
)

const isBlock = (argument: Command[number]) => String(argument).toUpperCase() === 'BLOCK'

const isArgument = (value: unknown) =>
  typeof value === 'string' || (typeof value === 'number' && !Number.isNaN(value))

/**
 * @throws StoreError `ONETRIP_WRONG_TYPE` unless the operation is well-formed; `ONETRIP_INVALID_INPUT` if it is empty or
 *   not safe on a shared connection.
 */
export function checkOperation({ commands, read }: Operation<unknown>): void {
  if (!Array.isArray(commands)) throw wrongType('commands must be a list of commands')
  if (commands.length === 0) throw invalid('commands must have at least one command')
  for (const command of commands as readonly Command[]) {
    if (!Array.isArray(command) || command.length === 0 || ![...command].every(isArgument)) {
      throw wrongType('a command must be a list of strings and numbers, its name first')
    }
    const name = String(command[0]).toUpperCase()
    const blocks = name.startsWith('XREAD') && command.some(isBlock)
    if (blocks || FORBIDDEN_COMMANDS.has(name)) {
      throw invalid(`${name} cannot be sent over a shared connection`)
    }
  }
  if (typeof read !== 'function') throw wrongType('read must be a function')
}

/** One day. Node's timers fire at once if they are set to more than 24.8 days. */
export const MAX_TIMEOUT_MS = 86_400_000

/** @throws TypeError if `object` lacks one of these functions. */
export function checkFunctions(what: string, object: unknown, names: readonly string[]): void {
  const functions = (object ?? {}) as Record<string, unknown>
  const missing = names.filter((name) => typeof functions[name] !== 'function')
  if (missing.length > 0) throw new TypeError(`${what} needs the functions ${missing.join(', ')}`)
}

export interface Range {
  min: number
  /** Default `Infinity`. */
  max?: number
  /** Only integers, and `Infinity` if it is in the range. */
  integer?: boolean
}

/** Returns an error message unless the value is a number in the range. */
function outOfRange(name: string, value: unknown, range: Range): string | undefined {
  const { min, max = Number.POSITIVE_INFINITY, integer = false } = range
  const fits = typeof value === 'number' && value >= min && value <= max
  if (fits && !(integer && Number.isFinite(value) && !Number.isInteger(value))) return undefined
  const kind = integer ? 'a whole number' : 'a number'
  const given = typeof value === 'number' ? value : `of type ${typeof value}`
  return `${name} must be ${kind} from ${min} to ${max}, not ${given}`
}

/** @throws TypeError naming the option, unless the value is a number in the range. */
export function checkRange(name: string, value: unknown, range: Range): asserts value is number {
  const wrong = outOfRange(name, value, range)
  if (wrong) throw new TypeError(wrong)
}

/**
 * Returns the options with their defaults; one that is undefined gets its default.
 *
 * @param defaults All options that exist.
 * @param kinds The range of each number; the values, or the type, of other options.
 * @param instead What to use instead, for names that users may expect.
 * @throws TypeError if an option does not exist, has another type or is out of range.
 */
export function checkedOptions<Options extends object, Defaults extends object>(
  of: string,
  options: Options,
  defaults: Defaults,
  kinds: Readonly<Record<string, Kind>> = {},
  instead: Readonly<Record<string, string>> = removedOptions,
): Merged<Options, Defaults> {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`the options of ${of} must be an object`)
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  for (const [name] of given) {
    if (Object.hasOwn(defaults, name)) continue
    const hint = instead[name] ?? `its options are ${Object.keys(defaults).join(', ')}`
    throw new TypeError(`${of} has no option ${name}: ${hint}`)
  }
  const checked = { ...defaults, ...Object.fromEntries(given) }
  for (const [name, kind] of Object.entries(kinds)) {
    const value: unknown = Reflect.get(checked, name)
    // As the caller wrote it: an option of the store, but tokens.clock and cookie.name.
    const path = of.includes(' ') ? name : `${of}.${name}`
    if (value === undefined) continue
    if (isValues(kind)) {
      if (kind.includes(value)) continue
      throw new TypeError(`${path} must be one of ${kind.join(', ')}`)
    }
    if (typeof kind === 'object') checkRange(path, value, kind)
    else if (typeof value !== kind) throw new TypeError(`${path} must be ${typeNames[kind]}`)
  }
  return checked as Merged<Options, Defaults>
}

export type Kind = Range | readonly unknown[] | 'string' | 'boolean' | 'function'

const isValues = (kind: Kind): kind is readonly unknown[] => Array.isArray(kind)

/** Options that have a default are never undefined. */
type Merged<Options, Defaults> = Omit<Options, keyof Defaults> & {
  [Name in keyof Defaults & keyof Options]-?: Defaults[Name] extends undefined
    ? Options[Name]
    : Exclude<Options[Name], undefined>
}
