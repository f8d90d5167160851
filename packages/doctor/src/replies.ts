// Parsers for the replies of Redis and Valkey, except INFO.

/** The name of the doctor's own connection. The report omits it. */
export const OWN_NAME = 'onetrip-doctor'

/** One connection in the reply to CLIENT LIST. */
export interface ClientRow {
  id: number
  /** The client's address without the port, or `Unix socket`. */
  host: string
  name: string
  /** Library and version; empty if the server or the client does not report them. */
  library: string
  user: string
  /** Abbreviations of Redis: `S` replica, `M` primary, `N` none. */
  flags: string
  idleSeconds: number
  /** Memory of the output buffer, in bytes. */
  outputBytes: number
  /** The last command: `client|list`. */
  command: string
  /** Commands on this connection; null if the server does not count them. */
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
  /** Unix time in seconds. */
  at: number
  micros: number
  /** In lower case. */
  command: string
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
  return (reply as Entry[]).map(([, at, micros, [command = ''], , client = '']) => ({
    at,
    micros,
    client,
    command: command.toLowerCase(),
  }))
}
