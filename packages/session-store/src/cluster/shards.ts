/** The fields of a node in a reply to CLUSTER SHARDS. */
type Fields = ReadonlyMap<unknown, unknown>

/** The nodes in a reply to CLUSTER SHARDS. Empty for any other reply. */
export const nodesInShards = (reply: unknown): Fields[] =>
  listOf(reply).flatMap((shard) => listOf(fieldsOf(shard).get('nodes')).map(fieldsOf))

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : [])

/** RESP2 sends a map as a list of alternating names and values. */
function fieldsOf(reply: unknown): Fields {
  const list = listOf(reply)
  return new Map(
    list.flatMap((value, index) => (index % 2 === 1 ? [[list[index - 1], value] as const] : [])),
  )
}
