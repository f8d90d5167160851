/** Parses the reply to INFO into its fields. */
export function parseInfo(reply: string): ReadonlyMap<string, string> {
  return new Map(
    reply.split(/\r?\n/).flatMap((line) => {
      const colon = line.startsWith('#') ? -1 : line.indexOf(':')
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )
}

/** What a Redis did for one command since its start, or since `CONFIG RESETSTAT`. */
export interface CommandStats {
  calls: number
  /** CPU time of executing it, in microseconds; without reading the command and writing its reply. */
  micros: number
}

/**
 * The commands in a reply to INFO, by name: `get`, `client|list` (before Redis 7.0 `client`). EXEC, EVAL and
 * FCALL include the time of the commands that they execute, which count by themselves, too.
 *
 * @param info with the section `commandstats`, as `parseInfo` returns it.
 */
export function commandStats(info: ReadonlyMap<string, string>): Map<string, CommandStats> {
  const stats = new Map<string, CommandStats>()
  for (const [field, value] of info) {
    const [, calls, micros] = /^calls=(\d+),usec=(\d+)/.exec(value) ?? []
    if (!field.startsWith('cmdstat_') || calls === undefined) continue
    stats.set(field.slice('cmdstat_'.length), { calls: Number(calls), micros: Number(micros) })
  }
  return stats
}
