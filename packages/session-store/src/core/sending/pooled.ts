import { isClustered, primariesOf, sendToPrimary, serverName } from '../../cluster/nodes.ts'
import { scanNodes } from '../../cluster/scan.ts'
import { isCluster } from '../connections/client.ts'
import { DEADLINES_UNTIL_STALLED } from '../connections/handshake.ts'
import { Pool } from '../connections/pool.ts'
import type { Sender } from './sender.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from './strategy-options.ts'
import type { Wire } from './wires.ts'

/** Sends each list of commands over one connection of a pool. */
export function pooled(options: StrategyOptions, wire: Wire): Sender {
  const { poolSize = 1, deadlineMs = DEFAULT_DEADLINE_MS } = options
  const pool = new Pool({
    ...options,
    size: poolSize,
    connectTimeoutMs: deadlineMs,
    stalledAfterMs: DEADLINES_UNTIL_STALLED * deadlineMs,
  })
  const send: Sender['send'] = ({ commands }, onArrival) =>
    pool.use((client) => wire.send(client, commands, onArrival))
  const cluster: Pick<Sender, 'send' | 'serversOf' | 'prepare'> = {
    async send(list, onArrival) {
      const servers = list.servers ?? pool.serversOf(list.commands)
      // Again after the wait, in which another connection may have been lost.
      for (let wait = pool.prepare(servers); wait; wait = pool.prepare(servers)) await wait
      return await send(list, onArrival)
    },
    serversOf: (commands) => pool.serversOf(commands),
    prepare: (servers) => pool.prepare(servers),
  }
  return {
    name: wire.name,
    send,
    ...(isClustered(options) && cluster),
    scan: (request, from) => pool.use((client) => scanNodes(client, request, from)),
    nodes: () =>
      pool.use(async (client) =>
        isCluster(client)
          ? primariesOf(client).map((primary = 'none') => ({
              name: primary,
              send: ({ commands }) => sendToPrimary(client, primary, commands),
            }))
          : [{ name: serverName(client), send }],
      ),
    state: () => pool.state,
    ready: (timeoutMs) => pool.ready(timeoutMs),
    close: () => pool.close(),
  }
}
