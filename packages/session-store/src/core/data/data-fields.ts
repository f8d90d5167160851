import { isDate } from 'node:util/types'
import { StoreError } from '../errors.ts'
import { checkName, checkObject, MAX_NAME_LENGTH } from '../input.ts'

/** What the data of a session may contain. */
export interface DataRules {
  /** Maximum number of fields of a session, and of one patch. */
  readonly fields: number
  /** Maximum size of one field's JSON text, in bytes (UTF-8). */
  readonly fieldBytes: number
  /** Maximum size of all names and JSON texts of one patch, in bytes (UTF-8). */
  readonly patchBytes: number
  /** Whether fields may have any names. Otherwise, those of `checkName`. */
  readonly anyName: boolean
}

/** The rules for sessions of tokens. */
export const tokenRules: DataRules = {
  fields: 64,
  fieldBytes: 16_384,
  patchBytes: 65_536,
  anyName: false,
}

/** The rules for external sessions, and so for the session stores of frameworks, which replace stores without limits. */
export const externalRules: DataRules = {
  fields: 10_000,
  fieldBytes: 8_388_608,
  patchBytes: 33_554_432,
  anyName: true,
}

/** Begins a stored name that is the JSON text of the field's name. `checkName` allows no such name. */
const ESCAPE = '\u0000'

/** The hash field that holds the label of the login, as it is. `storedName` never returns it. */
export const LABEL = ESCAPE

/**
 * The name of a field in Redis, where the empty name is the version. Names that Redis or UTF-8 would change are
 * escaped: the empty one, and those with a lone surrogate.
 */
const storedName = (name: string): string =>
  name === '' || name.startsWith(ESCAPE) || !name.isWellFormed()
    ? ESCAPE + JSON.stringify(name)
    : name

/** Reverses `storedName`. */
export function fieldName(stored: string): string {
  if (!stored.startsWith(ESCAPE)) return stored
  try {
    return JSON.parse(stored.slice(ESCAPE.length))
  } catch {
    return stored // another program wrote it
  }
}

/** A name for an error message. */
export const quotedName = (name: string): string => JSON.stringify(name.slice(0, MAX_NAME_LENGTH))

/** Fields as they are sent to Redis. */
export interface EncodedFields {
  /** Name in Redis and JSON text of each field. */
  readonly set: readonly (readonly [name: string, json: string])[]
  /** Names in Redis. */
  readonly removed: readonly string[]
}

/** A field that is set only if it still has the value `from`; both values are JSON. */
export interface SwappedField {
  field: string
  from: unknown
  to: unknown
}

export type EncodedSwap = readonly [name: string, fromJson: string, toJson: string]

const invalid = (message: string, cause?: unknown) =>
  new StoreError('ONETRIP_INVALID_INPUT', message, { cause })

/**
 * Encodes each field as JSON. A field that is undefined will be removed.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` naming the field and the limit, if a limit is exceeded, a name is
 *   invalid, or JSON cannot represent a value (cyclic, a BigInt, a function, a symbol, NaN, an invalid Date or
 *   undefined inside; a Map, a Set or another instance of a class without `toJSON`); or if `fields` is an
 *   instance of a class.
 */
export function encodeFields(fields: object, limits: DataRules): EncodedFields {
  checkObject('data', fields)
  if (Array.isArray(fields)) throw invalid('data must be an object, not an array')
  if (!isPlain(fields)) throw invalid(`data must be a plain object, not a ${classOf(fields)}`)
  const entries = Object.entries(fields)
  if (entries.length > limits.fields) {
    throw invalid(`data has ${entries.length} fields; at most ${limits.fields} are allowed`)
  }
  const set: [string, string][] = []
  const removed: string[] = []
  let bytes = 0
  for (const [name, value] of entries) {
    if (!limits.anyName) checkName('the name of a data field', name)
    const stored = storedName(name)
    bytes += Buffer.byteLength(stored)
    if (value === undefined) {
      removed.push(stored)
      continue
    }
    const json = encode(name, value)
    const size = Buffer.byteLength(json)
    if (size > limits.fieldBytes)
      throw invalid(tooLarge(`data field ${quotedName(name)}`, size, limits.fieldBytes))
    bytes += size
    set.push([stored, json])
  }
  if (bytes > limits.patchBytes) throw invalid(tooLarge('data', bytes, limits.patchBytes))
  return { set, removed }
}

/** @throws StoreError as `encodeFields`. */
export function encodeSwap({ field, from, to }: SwappedField, rules: DataRules): EncodedSwap {
  const [[name, json]] = encodeFields({ [field]: to }, rules).set as [[string, string]]
  return [name, JSON.stringify(from), json]
}

const tooLarge = (what: string, bytes: number, limit: number) =>
  `${what} has ${bytes} bytes as JSON; at most ${limit} are allowed`

function encode(name: string, value: unknown): string {
  const failure = `data field ${quotedName(name)} cannot be written as JSON`
  let json: string | undefined
  try {
    json = JSON.stringify(value, onlyJson)
  } catch (cause) {
    if (cause instanceof NotJson) throw invalid(`${failure}: ${cause.message}`)
    // TypeError: cyclic, or a BigInt. RangeError: nested too deeply. Or an error of a toJSON().
    throw invalid(`${failure}; see the cause`, cause)
  }
  // A toJSON() may return undefined.
  if (json === undefined) throw invalid(failure)
  return json
}

class NotJson extends Error {}

/** Rejects values that JSON.stringify drops or replaces silently. */
function onlyJson(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // An invalid Date is null here: its toJSON() has run.
  const original = value === null ? this[key] : null
  if (isDate(original) && Number.isNaN(original.getTime()))
    throw new NotJson('JSON has no invalid Date')
  const type = typeof value
  if (type === 'function' || type === 'symbol' || type === 'undefined' || Number.isNaN(value)) {
    throw new NotJson(`JSON has no ${Number.isNaN(value) ? 'NaN' : type}`)
  }
  if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
    throw new NotJson('JSON has no Infinity')
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlain(value)) {
    throw new NotJson(
      `JSON has no ${classOf(value)}; store a plain object or an array, or give the class a toJSON()`,
    )
  }
  return value
}

/** Whether this is not an instance of a class. Objects of another realm (`node:vm`) have another Object.prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const classOf = (value: object): string => value.constructor?.name ?? 'class'
