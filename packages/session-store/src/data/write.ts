import { type Operation, scoreOf } from '../command.ts'
import { requireSession, StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { type EncodedFields, MAX_FIELDS } from './encode.ts'
import { VERSION } from './read.ts'

/**
 * KEYS: login, recent, data. ARGV: a JSON object: `id`, `now`, `idleBefore`, `mode`, `maxFields`, `removed` (names), `set`
 * (name, JSON text, name …), and, for a write only to that version, `ifVersion` (text). Returns the new version, or why
 * nothing was written. The field U+0000 is LABEL.
 */
const WRITE = `-- write data
local login, recent, data = KEYS[1], KEYS[2], KEYS[3]
local write = cjson.decode(ARGV[1])
local id, removed, set = write.id, write.removed, write.set
local exists = redis.call('HGET', login, id)
  and tonumber(redis.call('ZSCORE', recent, id) or 0) >= write.idleBefore
if not exists then return 'gone' end
local version = redis.call('HGET', data, '${VERSION}') or '0'
if write.ifVersion and write.ifVersion ~= version then return 'conflict' end
local patches, max = write.mode == 'patch', write.maxFields
local function has(name) return redis.call('HEXISTS', data, name) end
local count = redis.call('HLEN', data)
if patches and count + #set / 2 > max then
  local grows = false
  count = count - has('${VERSION}') - has('\\0')
  for _, name in ipairs(removed) do count = count - has(name) end
  for i = 1, #set, 2 do
    if has(set[i]) == 0 then count, grows = count + 1, true end
  end
  if grows and count > max then return 'full' end
end
if not patches then redis.call('DEL', data) elseif #removed > 0 then redis.call('HDEL', data, unpack(removed)) end
if #set > 0 then redis.call('HSET', data, unpack(set)) end
version = string.format('%.0f', version + 1)
redis.call('HSET', data, '${VERSION}', version)
redis.call('ZADD', recent, write.now, id)
return tonumber(version)`

interface DataWrite {
  id: string
  /** `patch` changes the given fields. `replace` also removes all others. */
  mode: 'patch' | 'replace'
  fields: EncodedFields
  /** Write only if the data has this version. */
  ifVersion?: number | undefined
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
  { id, mode, fields, ifVersion }: DataWrite,
  { now, idleBefore }: { now: number; idleBefore: number },
): Operation<WrittenData> {
  const write = {
    id,
    now: String(scoreOf(now)),
    idleBefore: scoreOf(Math.max(0, idleBefore)), // JSON has no infinity
    mode,
    ifVersion: ifVersion?.toString(),
    maxFields: MAX_FIELDS,
    removed: fields.removed,
    set: fields.set.flat(),
  }
  const own = [keys.login(id), keys.recent(id), keys.data(id)]
  return {
    commands: [['EVAL', WRITE, own.length, ...own, JSON.stringify(write)]],
    readOnly: false,
    read: ([reply]) =>
      typeof reply === 'number' ? { version: reply } : (reply as Exclude<WrittenData, object>),
  }
}

/**
 * @throws StoreError `ONETRIP_CONFLICT`, `ONETRIP_INVALID_INPUT` or `ONETRIP_UNKNOWN_SESSION` if nothing was written.
 */
export function requireWritten(written: WrittenData, ifVersion?: number): { version: number } {
  if (written === 'full') {
    const message = `the session's data would have more than ${MAX_FIELDS} fields`
    throw new StoreError('ONETRIP_INVALID_INPUT', message)
  }
  if (written === 'conflict') {
    const message = `the session's data is not at version ${ifVersion}; read it again`
    throw new StoreError('ONETRIP_CONFLICT', message)
  }
  return requireSession(written === 'gone' ? undefined : written)
}
