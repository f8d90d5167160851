import { Decoder, RESP_TYPES } from 'ioredis/built/resp/decoder.js'

const HIDDEN = '***'
const MAX_CHARACTERS = 80

/**
 * Decodes one direction of a connection to Redis, starting at the beginning of a message.
 *
 * @param describe formats a message: a command (`commandText`) or a reply (`replyText`).
 * @returns a function that takes the next bytes and returns the messages that are complete with them.
 */
export function reader(describe: (message: unknown) => string): (bytes: Buffer) => string[] {
  let lines: string[] = []
  const take = (message: unknown) => void lines.push(describe(message))
  const decoder = new Decoder({
    onReply: take,
    onErrorReply: take,
    onPush: take,
    getTypeMapping: () => ({ [RESP_TYPES.DOUBLE]: String }), // without `:`, which is for integers
  })
  return (bytes) => {
    lines = []
    decoder.write(bytes)
    return lines
  }
}

/** Formats a command as in redis-cli, without passwords: `AUTH api ***`. */
export function commandText(command: unknown): string {
  const words = (Array.isArray(command) ? command : [command]).map(String)
  const name = words[0]?.toUpperCase() ?? ''
  words[0] = name
  const auth = words.findIndex((word) => word.toUpperCase() === 'AUTH')
  if (name === 'AUTH') words[words.length - 1] = HIDDEN
  else if (name === 'HELLO' && auth > 0) words[auth + 2] = HIDDEN
  return words.map((word) => short(word === '' ? '""' : word)).join(' ')
}

/** Formats a reply: `OK`, `:1`, `(nil)`, `-ERR …`, `[7 fields]`. */
export function replyText(reply: unknown): string {
  if (reply === null) return '(nil)'
  if (reply instanceof Error) return short(`-${reply.message}`)
  if (typeof reply === 'number') return `:${reply}`
  if (Array.isArray(reply)) return short(`[${reply.map(replyText).join(', ')}]`)
  if (reply instanceof Map) return `[${reply.size} fields]`
  if (typeof reply === 'object') return `[${Object.keys(reply).length} fields]`
  return short(String(reply))
}

/** Truncates a text to one line of limited length. */
function short(text: string): string {
  const line = text.split(/\r?\n/, 1)[0] ?? ''
  if (line === text && text.length <= MAX_CHARACTERS) return text
  return `${line.slice(0, MAX_CHARACTERS / 2)}… (${Buffer.byteLength(text).toLocaleString('en')} bytes)`
}
