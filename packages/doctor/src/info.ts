/** Parses the reply to INFO into its fields. */
export function parseInfo(reply: string): ReadonlyMap<string, string> {
  return new Map(
    reply.split(/\r?\n/).flatMap((line) => {
      const colon = line.startsWith('#') ? -1 : line.indexOf(':')
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )
}

/** Statistics of one command since Redis was started, or since `CONFIG RESETSTAT`. */
export interface CommandStats {
  calls: number
  /** Execution time in microseconds, without reading the command and writing its reply. */
  micros: number
}

/**
 * Returns command → statistics from a reply to INFO. Subcommands are listed as `client|list` (before Redis 7.0
 * as `client`). The time of EXEC, EVAL and FCALL includes the commands that they execute, which are also
 * listed.
 *
 * @param info The result of `parseInfo`, with the section `commandstats`.
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
