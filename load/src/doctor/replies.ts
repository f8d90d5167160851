// The replies of Redis and Valkey that the doctor reads, besides INFO.

/** The name of the doctor's own connection, which is left out of what it reports. */
export const OWN_NAME = 'onetrip-doctor'

/** One connection in the reply to CLIENT LIST. */
export interface ClientRow {
  id: number
  /** The client's address without its port; `Unix socket`. */
  host: string
  name: string
  /** Library and version; empty where the server or the client does not report them. */
  library: string
  user: string
  /** As Redis abbreviates them: `S` replica, `M` primary, `N` none. */
  flags: string
  idleSeconds: number
  /** Memory of replies that wait to be sent, in bytes. */
  outputBytes: number
  /** The last command, `client|list`. */
  command: string
  /** Commands since it connected; null where the server does not count them. */
  commands: number | null
}

export function parseClientList(reply: string): ClientRow[] {
  return reply.split('\n').flatMap((line) => {
    const fields = new Map(
      Array.from(line.matchAll(/([\w-]+)=(\S*)/g), ([, key, value]) => [key, value]),
    )
    const text = (field: string) => fields.get(field) ?? ''
    if (!fields.has('id')) return []
    const address = text('addr')
    return {
      id: Number(text('id')),
      host: address.includes('/') ? 'Unix socket' : address.replace(/:\d+$/, ''),
      name: text('name'),
      library: [text('lib-name'), text('lib-ver')].filter(Boolean).join(' '),
      user: text('user'),
      flags: text('flags'),
      idleSeconds: Number(text('idle')),
      outputBytes: Number(text('omem')),
      command: text('cmd'),
      commands: fields.has('tot-cmds') ? Number(text('tot-cmds')) : null,
    }
  })
}

/** One entry of the slow log. */
export interface SlowCommand {
  /** Seconds since 1970. */
  at: number
  micros: number
  /** Lower case. */
  command: string
  /** May have secrets. Redis cuts long ones. */
  args: readonly string[]
  /** The name of the client's connection. */
  client: string
}

export function parseSlowLog(reply: unknown): SlowCommand[] {
  type Entry = [
    id: number,
    at: number,
    micros: number,
    command: string[],
    address?: string,
    name?: string,
  ]
  return (reply as Entry[]).map(([, at, micros, [command = '', ...args], , client = '']) => ({
    ...{ at, micros, args, client },
    command: command.toLowerCase(),
  }))
}

/** One event of the latency monitor. */
export interface Stall {
  /** `fork`, `aof-fsync-always`, `command`, … */
  event: string
  /** The last one, in seconds since 1970. */
  at: number
  latestMs: number
  longestMs: number
}

export const parseLatencyLatest = (reply: unknown): Stall[] =>
  (reply as [string, number, number, number][]).map(([event, at, latestMs, longestMs]) => ({
    ...{ event, at, latestMs, longestMs },
  }))
