import { isDate } from 'node:util/types'
import { StoreError } from '../errors.ts'
import { checkName, checkType, MAX_NAME_LENGTH } from '../input.ts'

/** Maximum number of fields of a session, and of one patch. */
export const MAX_FIELDS = 64
/** Maximum size of one field's JSON text, in bytes (UTF-8). */
const MAX_FIELD_BYTES = 16_384
/** Maximum size of all names and JSON texts of one patch, in bytes (UTF-8). */
const MAX_PATCH_BYTES = 65_536

/** The hash field that holds the label of the login, as it is. `checkName` allows no field of that name. */
export const LABEL = '\u0000'

/** A name for an error message. */
export const quotedName = (name: string): string => JSON.stringify(name.slice(0, MAX_NAME_LENGTH))

/** Fields as they are sent to Redis. */
export interface EncodedFields {
  /** Name and JSON text of each field. */
  readonly set: readonly (readonly [name: string, json: string])[]
  readonly removed: readonly string[]
}

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
export function encodeFields(fields: object): EncodedFields {
  checkType('data', fields, 'object')
  if (Array.isArray(fields)) throw invalid('data must be an object, not an array')
  if (!isPlain(fields)) throw invalid(`data must be a plain object, not a ${classOf(fields)}`)
  const entries = Object.entries(fields)
  if (entries.length > MAX_FIELDS) {
    throw invalid(`data has ${entries.length} fields; at most ${MAX_FIELDS} are allowed`)
  }
  const set: [string, string][] = []
  const removed: string[] = []
  let bytes = 0
  for (const [name, value] of entries) {
    checkName('the name of a data field', name)
    bytes += Buffer.byteLength(name)
    if (value === undefined) {
      removed.push(name)
      continue
    }
    const json = encode(name, value)
    const size = Buffer.byteLength(json)
    if (size > MAX_FIELD_BYTES)
      throw invalid(tooLarge(`data field ${quotedName(name)}`, size, MAX_FIELD_BYTES))
    bytes += size
    set.push([name, json])
  }
  if (bytes > MAX_PATCH_BYTES) throw invalid(tooLarge('data', bytes, MAX_PATCH_BYTES))
  return { set, removed }
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
