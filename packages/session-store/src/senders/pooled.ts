import { Pool } from '../connections/pool.ts'
import { scanNodes } from '../connections/scan.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from '../strategy-options.ts'
import type { Sender } from './sender.ts'
import type { Wire } from './wires.ts'

const DEADLINES_UNTIL_STALLED = 5

/** Sends over connections that stay open, each list of commands over one of them. */
export function pooled(options: StrategyOptions, wire: Wire): Sender {
  const { url, client, poolSize = 1, deadlineMs = DEFAULT_DEADLINE_MS } = options
  const pool = new Pool({
    url,
    tls: options.tls,
    client,
    size: poolSize,
    connectTimeoutMs: deadlineMs,
    stalledAfterMs: DEADLINES_UNTIL_STALLED * deadlineMs,
  })
  return {
    name: wire.name,
    send: ({ commands }) => pool.use((client) => wire.send(client, commands)),
    scan: (request, from) => pool.use((client) => scanNodes(client, request, from)),
    state: () => pool.state,
    ready: (timeoutMs) => pool.ready(timeoutMs),
    close: () => pool.close(),
  }
}
