import type { Command, Operation, Reply } from '../command.ts'
import { StoreError } from '../errors.ts'
import { checkType } from '../input.ts'
import type { Keys } from '../keys.ts'
import { batches } from '../redis/walk.ts'
import { LABEL, quotedName } from './encode.ts'

/**
 * The types of your data fields, for `request.session` and `req.onetrip`, and the default of `SessionStore`:
 *
 * ```ts
 * declare module '@onetrip/session-store' {
 *   interface SessionDataFields {
 *     cart: Item[]
 *   }
 * }
 * ```
 *
 * Without a declaration, fields have any names and unknown values.
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add fields
export interface SessionDataFields {}

/** `SessionDataFields`, or unknown values by any name if nothing is declared. */
export type DeclaredFields = keyof SessionDataFields extends never
  ? Record<string, unknown>
  : SessionDataFields

/** Changes of fields. Undefined removes a field. */
export type DataPatch<Fields extends object = DeclaredFields> = {
  readonly [Name in keyof Fields]?: Fields[Name] | undefined
}

/**
 * The data of a session. Nothing checks at run time that stored values have these types: declare what JSON returns (a
 * Date is a string), and expect what former versions of your application stored.
 */
export interface SessionData<Fields extends object = DeclaredFields> {
  /** Field → JSON value. */
  fields: Partial<Fields>
  /** 0 before the first write; each write increases it by one. */
  version: number
}

/** Data as it is read, before it gets the application's types. */
type UntypedData = SessionData<Record<string, unknown>>

export interface DataOption {
  /** Also read the session's data, in the same round trip. */
  data?: boolean
}

export interface PatchOptions {
  /** Write only if the data still has this version; 0 means that nothing was written before. */
  ifVersion?: number | undefined
}

/** A result, with the session's data if `data: true` was passed. */
export type MaybeData<
  Result,
  Asked extends DataOption,
  Fields extends object = DeclaredFields,
> = Asked extends { data: true } ? Result & { data: SessionData<Fields> } : Result

/** The hash field that holds the version. Names of data fields are never empty. */
export const VERSION = ''

/** Session data as stored in Redis: names, JSON texts, and the version. */
export interface StoredData {
  readonly fields: readonly (readonly [name: string, json: string])[]
  readonly version: number
}

/**
 * Parses the reply to HGETALL: usually a flat list (field, value, field …), but an object with ioredis's
 * `replyMapping: 'resp3'`, and with node-redis in RESP3.
 */
const hashEntries = (reply: Reply | undefined): [field: string, value: string][] =>
  Array.isArray(reply)
    ? ([...batches(reply, 2)] as [string, string][])
    : Object.entries((reply ?? {}) as Record<string, string>)

/** Reads session data from the reply to HGETALL. */
export function readStored(reply: Reply | undefined): StoredData {
  const fields: [string, string][] = []
  let version = 0
  for (const [name, value] of hashEntries(reply)) {
    if (name === VERSION) version = Number(value)
    else if (name !== LABEL) fields.push([name, value])
  }
  return { fields, version }
}

/**
 * @param mayHaveWritten Whether the operation also writes.
 * @throws StoreError `ONETRIP_UNREADABLE_DATA`, naming the fields that are not JSON.
 */
function decodeData({ fields, version }: StoredData, mayHaveWritten: boolean): UntypedData {
  const values: [name: string, value: unknown][] = []
  const unreadable: string[] = []
  for (const [name, text] of fields) {
    try {
      values.push([name, JSON.parse(text)])
    } catch {
      unreadable.push(name)
    }
  }
  if (unreadable.length === 0) return { fields: Object.fromEntries(values), version }
  const listed = unreadable.map(quotedName).join(', ')
  throw new StoreError(
    'ONETRIP_UNREADABLE_DATA',
    `not JSON in Redis: data field ${listed}; use patch to remove or replace it`,
    { mayHaveWritten, retrySafe: false },
  )
}

/** Stores the data unchanged, without the label. Keys: data. */
export const copyData = (key: string, { fields, version }: StoredData): Command => [
  'HSET',
  key,
  ...fields.flat(),
  VERSION,
  version,
]

/**
 * Returns the operation with a command that also reads the session's data. It comes first: the operation reads the login
 * after it, and so also notices a session that ends meanwhile. Keys: data, and those of the operation.
 */
export function withData<Result extends object>(
  operation: Operation<Result | undefined>,
  keys: Keys,
  id: string,
): Operation<(Result & { data: UntypedData }) | undefined> {
  return {
    ...operation,
    commands: [['HGETALL', keys.data(id)], ...operation.commands],
    read([data, ...replies]) {
      const result = operation.read(replies)
      return result && { ...result, data: decodeData(readStored(data), !operation.readOnly) }
    },
  }
}

/** `withData` if `options.data` is set, otherwise the operation itself. */
export function withDataIf<Result extends object, Asked extends DataOption, Fields extends object>(
  options: Asked | undefined,
  operation: Operation<Result | undefined>,
  keys: Keys,
  id: string,
): Operation<MaybeData<Result, Asked, Fields> | undefined> {
  if (options !== undefined) checkType('options', options, 'object')
  const asked: unknown = options?.data ? withData(operation, keys, id) : operation
  return asked as Operation<MaybeData<Result, Asked, Fields> | undefined>
}
