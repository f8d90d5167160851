import type { Variant } from '../../contenders.ts'
import type { ReportTable } from '../model.ts'

/** How the commands of a request reach Redis; docs/method.md has the same table. */
export const descriptions: Readonly<Record<Variant, string>> = {
  naive: 'a new connection with ioredis’s defaults, one awaited command after the other, quit()',
  'naive-lean': 'the same, but the client sends nothing of its own accord when it connects',
  sequential: 'a connection that stays open, one awaited command after the other',
  pipeline: 'a connection that stays open, one pipeline: the documents’ answer',
  transaction: 'the same between MULTI and EXEC',
  script: 'the same as one script on the server',
  batch: 'one pipeline for all requests of an event-loop turn, merged into fewer commands',
  noop: 'not at all: the ceiling of everything that is not Redis',
  'node-redis': 'node-redis: a pipeline for each request, as its documentation has it',
  'node-redis-batch': 'node-redis with the batching of batch',
  glide: 'valkey-glide: a pipeline for each request, as its documentation has it',
  autopipelining: 'plain ioredis, with its own batching',
  'connect-redis':
    'another application: @fastify/session with connect-redis, the same as seen from outside',
  express: 'likewise: Express and express-session with connect-redis',
}

/** What the variants of a result are; those that are known no longer are left out. */
export function variantsTable(names: readonly string[]): ReportTable {
  const known = Object.entries(descriptions).filter(([name]) => names.includes(name))
  return {
    caption: 'The variants: how the commands of a request reach Redis',
    head: ['variant', 'how'],
    rows: known,
    texts: [1],
  }
}
