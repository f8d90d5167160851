import { type Client, isCluster } from '../core/connections/client.ts'
import type { Update } from '../core/operations.ts'
import { readOutcomes } from '../core/outcomes.ts'
import type { ScanPosition, ScanRequest, ScanStep } from '../core/sending/sender.ts'
import { sendCommand } from '../core/sending/wires.ts'
import { nodeName } from './health.ts'

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

/** One step of SCAN over all primaries of a cluster, one after the other. May miss keys whose slot moves. */
export async function scanNodes(
  client: Client,
  request: ScanRequest,
  from: ScanPosition | undefined,
): Promise<ScanStep> {
  const primaries = isCluster(client)
    ? client
        .nodes('master')
        .map((redis) => ({ name: nodeName(redis), redis }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    : [{ name: '', redis: client }]
  // Skips a node that has left the cluster meanwhile.
  const at = primaries.findIndex(({ name }) => name >= (from?.node ?? ''))
  const primary = primaries[at]
  if (!primary) return { keys: [], next: undefined }

  const update = scanOne(
    request,
    from?.node === primary.name ? from : { node: primary.name, cursor: '0' },
  )
  const outcomes = await Promise.all(
    update.commands.map((command) => sendCommand(primary.redis, command)),
  )
  const { keys, next } = readOutcomes(update, outcomes)
  const following = primaries[at + 1]
  return {
    keys,
    next: next ?? (following && { node: following.name, cursor: '0' }),
  }
}
