import { StoreError } from '../errors.ts'
import { checkName, checkObject, checkOptions } from '../input.ts'
import { checkOptionNames, type NamesOf } from '../option-names.ts'
import { checkRange } from '../range.ts'

/** Limits of the data of one session. */
export interface DataLimits {
  /** Maximum number of fields of a session, and of one patch. 1 to 1,000. Default 64. */
  fields?: number
  /** Maximum size of one field's JSON text, in bytes (UTF-8). 2 to 8,388,608. Default 16,384. */
  fieldBytes?: number
  /** Maximum size of all names and JSON texts of one patch, in bytes (UTF-8). 2 to 8,388,608. Default 65,536. */
  patchBytes?: number
}

const optionNames: NamesOf<DataLimits> = { fields: true, fieldBytes: true, patchBytes: true }

const MAX_BYTES = 8_388_608

/** @throws TypeError if a limit is out of range. */
export function checkedDataLimits(limits: DataLimits = {}): Required<DataLimits> {
  checkOptions('dataLimits', limits)
  checkOptionNames('dataLimits', limits, optionNames)
  const { fields = 64, fieldBytes = 16_384, patchBytes = 65_536 } = limits
  checkRange('dataLimits.fields', fields, { min: 1, max: 1_000, integer: true })
  checkRange('dataLimits.fieldBytes', fieldBytes, { min: 2, max: MAX_BYTES, integer: true })
  checkRange('dataLimits.patchBytes', patchBytes, { min: 2, max: MAX_BYTES, integer: true })
  return { fields, fieldBytes, patchBytes }
}

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
 *   invalid, or JSON cannot represent a value (cyclic, a BigInt, a function, a symbol, NaN or undefined
 *   inside; a Map, a Set or another instance of a class without `toJSON`).
 */
export function encodeFields(
  fields: Readonly<Record<string, unknown>>,
  limits: Required<DataLimits>,
): EncodedFields {
  checkObject('data', fields)
  if (Array.isArray(fields)) throw invalid('data must be an object, not an array')
  const entries = Object.entries(fields)
  if (entries.length > limits.fields) {
    throw invalid(`data has ${entries.length} fields; at most ${limits.fields} are allowed`)
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
    if (size > limits.fieldBytes)
      throw invalid(tooLarge(`data field "${name}"`, size, limits.fieldBytes))
    bytes += size
    set.push([name, json])
  }
  if (bytes > limits.patchBytes) throw invalid(tooLarge('data', bytes, limits.patchBytes))
  return { set, removed }
}

const tooLarge = (what: string, bytes: number, limit: number) =>
  `${what} has ${bytes} bytes as JSON; at most ${limit} are allowed`

function encode(name: string, value: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value, onlyJson)
  } catch (cause) {
    if (cause instanceof NotJson)
      throw invalid(`data field "${name}" cannot be written as JSON: ${cause.message}`)
    // TypeError: cyclic, or a BigInt. RangeError: nested too deeply. Or an error of a toJSON().
    throw invalid(`data field "${name}" cannot be written as JSON; see the cause`, cause)
  }
  // A toJSON() may return undefined.
  if (json === undefined) throw invalid(`data field "${name}" cannot be written as JSON`)
  return json
}

class NotJson extends Error {}

/** Rejects values that JSON.stringify drops or replaces silently. */
function onlyJson(_key: string, value: unknown): unknown {
  const type = typeof value
  if (type === 'function' || type === 'symbol' || type === 'undefined' || Number.isNaN(value)) {
    throw new NotJson(`JSON has no ${Number.isNaN(value) ? 'NaN' : type}`)
  }
  if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
    throw new NotJson('JSON has no Infinity')
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !isPlain(value)) {
    const { name = 'class' } = value.constructor ?? {}
    throw new NotJson(
      `JSON has no ${name}; store a plain object or an array, or give the class a toJSON()`,
    )
  }
  return value
}

/** Whether this is not an instance of a class. Objects of another realm (`node:vm`) have another Object.prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
