import { type Command, type Operation, type Reply, scoreOf } from '../command.ts'
import { requireSession, StoreError } from '../errors.ts'
import { checkObject } from '../input.ts'
import type { Keys } from '../keys.ts'
import { batches } from '../retention/walk.ts'
import { type EncodedFields, LABEL, quotedName } from './encode-fields.ts'

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
export type UntypedData = SessionData<Record<string, unknown>>

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
const VERSION = ''

/** Lua's stack limits a script to about 7,900 values in one command, two for each field. */
const FIELDS_PER_COMMAND = 1_000

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

/** Commands that store the data unchanged, without the label. Keys: data. */
export const copyCommands = (key: string, { fields, version }: StoredData): Command[] =>
  [...batches([...fields, [VERSION, version]], FIELDS_PER_COMMAND)].map((some) => [
    'HSET',
    key,
    ...some.flat(),
  ])

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
  if (options !== undefined) checkObject('options', options)
  const asked: unknown = options?.data ? withData(operation, keys, id) : operation
  return asked as Operation<MaybeData<Result, Asked, Fields> | undefined>
}

/**
 * KEYS: login, recent, data. ARGV: a JSON object: `id`, `now`, `idleBefore`, `mode`, `maxFields`, `removed` (names), `set`
 * (name, JSON text, name …), and, for a write only to that version, `ifVersion` (text). Returns the new version, or why
 * nothing was written.
 */
const WRITE = `-- write data
local login, recent, data = KEYS[1], KEYS[2], KEYS[3]
local write = cjson.decode(ARGV[1])
local id, removed, set = write.id, write.removed, write.set
local function inParts(command, list)
  for at = 1, #list, ${2 * FIELDS_PER_COMMAND} do
    redis.call(command, data, unpack(list, at, math.min(at + ${2 * FIELDS_PER_COMMAND - 1}, #list)))
  end
end
local exists = redis.call('HGET', login, id)
  and tonumber(redis.call('ZSCORE', recent, id) or 0) >= write.idleBefore
if not exists then return 'gone' end
local version = redis.call('HGET', data, '${VERSION}') or '0'
if write.ifVersion and write.ifVersion ~= version then return 'conflict' end
local patches, max = write.mode == 'patch', write.maxFields
if patches and redis.call('HLEN', data) + #set / 2 > max then
  local has, count, grows = {}, 0, false
  for _, name in ipairs(redis.call('HKEYS', data)) do
    if name ~= '${VERSION}' and name ~= '\\0' then has[name], count = true, count + 1 end -- \\0: LABEL
  end
  for _, name in ipairs(removed) do
    if has[name] then has[name], count = nil, count - 1 end
  end
  for i = 1, #set, 2 do
    if not has[set[i]] then count, grows = count + 1, true end
  end
  if grows and count > max then return 'full' end
end
if patches then inParts('HDEL', removed) else redis.call('DEL', data) end
inParts('HSET', set)
version = string.format('%.0f', version + 1)
redis.call('HSET', data, '${VERSION}', version)
redis.call('ZADD', recent, write.now, id)
return tonumber(version)`

export interface DataWrite {
  id: string
  /** `patch` changes the given fields. `replace` also removes all others. */
  mode: 'patch' | 'replace'
  fields: EncodedFields
  /** Write only if the data has this version. */
  ifVersion?: number | undefined
  /** Maximum number of fields after a patch. */
  maxFields: number
}

/** The new version, or why nothing was written. */
type WrittenData = { version: number } | 'gone' | 'conflict' | 'full'

/**
 * Writes session data atomically and refreshes the session. Does not bring back a session that has ended or is
 * idle.
 *
 * It is a script even without `ifVersion`. With plain commands, a concurrent write with `ifVersion` could come
 * between the change of a field and that of the version, and overwrite the change; and they could not check the
 * maximum number of fields. The script takes 6 us of Redis's CPU, plain commands 2 us (2026-11-22).
 *
 * Keys, all of one part: login, recent, data.
 */
export function writeData(
  keys: Keys,
  { id, mode, fields, ifVersion, maxFields }: DataWrite,
  { now, idleBefore }: { now: number; idleBefore: number },
): Operation<WrittenData> {
  const write = {
    id,
    now: String(scoreOf(now)),
    idleBefore: scoreOf(Math.max(0, idleBefore)), // JSON has no infinity
    mode,
    ifVersion: ifVersion?.toString(),
    maxFields,
    removed: fields.removed,
    set: fields.set.flat(),
  }
  const own = [keys.login(id), keys.recent(id), keys.data(id)]
  const command: Command = ['EVAL', WRITE, own.length, ...own, JSON.stringify(write)]
  return {
    commands: [command],
    readOnly: false,
    read: ([reply]) =>
      typeof reply === 'number' ? { version: reply } : (reply as Exclude<WrittenData, object>),
  }
}

/**
 * @throws StoreError `ONETRIP_CONFLICT`, `ONETRIP_INVALID_INPUT` or `ONETRIP_UNKNOWN_SESSION` if nothing was written.
 */
export function requireWritten(
  written: WrittenData,
  { ifVersion, maxFields }: DataWrite,
): { version: number } {
  if (written === 'full') {
    const message = `the session's data would have more than ${maxFields} fields`
    throw new StoreError('ONETRIP_INVALID_INPUT', message)
  }
  if (written === 'conflict') {
    const message = `the session's data is not at version ${ifVersion}; read it again`
    throw new StoreError('ONETRIP_CONFLICT', message)
  }
  return requireSession(written === 'gone' ? undefined : written)
}
