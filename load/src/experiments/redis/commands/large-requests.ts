import { sum } from 'simple-statistics'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { systemCallsPerReply } from '../../../drivers/redis/system-calls.ts'
import type { Case, Measured } from '../../../experiment/shape.ts'
import { loop, type Sent, valuesIn } from './measure.ts'

/** All requests read random ones of these keys, with values of `VALUE_BYTES`. */
export const KEYS = 1_000
export const VALUE_BYTES = 64

const KEY = '{key}'
const repeat = (count: number, ...words: string[]) => new Array<string[]>(count).fill(words).flat()

const SCRIPT = `
local values = {}
for i, key in ipairs(KEYS) do values[i] = redis.call('GET', key) end
return values`

const requests: Readonly<Record<string, (values: number) => Sent>> = {
  GET: () => ({ command: ['GET', KEY] }),
  'pipeline of GETs': (values) => ({ command: ['GET', KEY], pipeline: values }),
  MGET: (values) => ({ command: ['MGET', ...repeat(values, KEY)], values }),
  EVAL: (values) => ({ command: ['EVAL', SCRIPT, `${values}`, ...repeat(values, KEY)], values }),
  'MULTI/EXEC': (values) => ({
    command: ['MULTI', ...repeat(values, ';', 'GET', KEY), ';', 'EXEC'],
    pipeline: values + 2,
    values,
  }),
}

export const [single = '', ...several] = Object.keys(requests)

/** One client reads many values per request in a loop. Meanwhile, others send GETs. */
export async function readMany(
  server: RedisServer,
  one: Case,
  { seconds, signal }: { seconds: number; signal: AbortSignal },
): Promise<Measured> {
  const request = requests[String(one.command)] ?? (() => ({ command: [String(one.command)] }))
  const sent = { ...request(Number(one.elements)), keys: KEYS }
  const measured = await loop(server, sent, { seconds, signal })
  if (one.elements === undefined) return measured
  const load = { target: server, mode: 'long', connections: 1, signal } as const
  const calls = await systemCallsPerReply(server.pid, { ...load, ...sent })
  const systemCalls = calls && (1_000 * sum(Object.values(calls))) / valuesIn(1, sent)
  return { ...measured, values: { ...measured.values, systemCalls } }
}
