/** Parses the reply to INFO into its fields. */
export function parseInfo(reply: string): ReadonlyMap<string, string> {
  return new Map(
    reply.split(/\r?\n/).flatMap((line) => {
      const colon = line.startsWith('#') ? -1 : line.indexOf(':')
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )
}
