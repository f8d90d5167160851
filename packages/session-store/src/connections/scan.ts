import { readOutcomes } from '../outcomes.ts'
import type { ScanPosition, ScanRequest, ScanStep } from '../senders/sender.ts'
import { sendCommand } from '../senders/wires.ts'
import type { Update } from '../updates.ts'
import { type Client, isCluster } from './client.ts'

/** One step of SCAN on one server. */
export function scanOne(
  { match, count }: ScanRequest,
  from: ScanPosition | undefined,
): Update<ScanStep> {
  return {
    commands: [['SCAN', from?.cursor ?? '0', 'MATCH', match, 'COUNT', count]],
    readOnly: true,
    read([reply]) {
      const [cursor, keys] = reply as readonly [string, readonly string[]]
      return { keys, next: cursor === '0' ? undefined : { node: from?.node ?? '', cursor } }
    },
  }
}

/**
 * One step of SCAN over every master of a cluster, one after the other. A key whose slot moves while
 * this goes on may be missed.
 */
export async function scanNodes(
  client: Client,
  request: ScanRequest,
  from: ScanPosition | undefined,
): Promise<ScanStep> {
  const masters = isCluster(client)
    ? client
        .nodes('master')
        .map((redis) => ({ name: `${redis.options.host}:${redis.options.port}`, redis }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    : [{ name: '', redis: client }]
  // A node that has gone meanwhile is passed over.
  const at = masters.findIndex(({ name }) => name >= (from?.node ?? ''))
  const master = masters[at]
  if (!master) return { keys: [], next: undefined }

  const update = scanOne(
    request,
    from?.node === master.name ? from : { node: master.name, cursor: '0' },
  )
  const outcomes = await Promise.all(
    update.commands.map((command) => sendCommand(master.redis, command)),
  )
  const { keys, next } = readOutcomes(update, outcomes)
  const following = masters[at + 1]
  return {
    keys,
    next: next ?? (following && { node: following.name, cursor: '0' }),
  }
}
