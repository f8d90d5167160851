import type { Traffic } from '@onetrip/stack/relay/relay.ts'
import type { Exchange, Wire } from '../events.ts'
import { commandText, reader, replyText } from './words.ts'

const kinds = { connect: 'connect', close: 'close', requests: 'send', replies: 'receive' } as const

/**
 * The messages for one request, from the recorded traffic.
 *
 * A round trip begins with the first bytes that are sent after a reply has arrived. Consecutive packets in the same
 * direction are one message.
 *
 * @param sentAt when the request was sent, on the clock of `performance.now()`.
 * @param sessionId replaced with `<session>`.
 */
export function exchangesOf(
  traffic: readonly Traffic[],
  { sentAt, sessionId }: { sentAt: number; sessionId: string },
): Pick<Wire, 'connections' | 'roundTrips' | 'exchanges'> {
  const readers = new Map<string, ReturnType<typeof reader>>()
  const linesOf = ({ kind, connection, data }: Traffic) => {
    if (!data) return []
    const key = `${kind} ${connection}`
    const read = readers.get(key) ?? reader(kind === 'requests' ? commandText : replyText)
    readers.set(key, read)
    return read(data).map((line) => line.replaceAll(sessionId, '<session>'))
  }
  const micros = (ms: number) => (ms - sentAt) * 1_000
  const exchanges: Exchange[] = []
  let roundTrips = 0
  /** When the first reply of this round trip arrived. */
  let answeredAt = Number.NEGATIVE_INFINITY
  for (const one of traffic.toSorted((a, b) => a.atMs - b.atMs)) {
    const kind = kinds[one.kind]
    const last = exchanges.at(-1)
    const part = {
      untilUs: micros(one.untilMs),
      bytes: one.data?.length ?? 0,
      lines: linesOf(one),
    }
    if (one.data && last?.kind === kind) {
      last.untilUs = part.untilUs
      last.bytes += part.bytes
      last.lines.push(...part.lines)
      continue
    }
    if (kind === 'send' && one.atMs >= answeredAt) {
      roundTrips++
      answeredAt = Number.POSITIVE_INFINITY
    } else if (kind === 'receive') answeredAt = Math.min(answeredAt, one.untilMs)
    exchanges.push({
      kind,
      atUs: micros(one.atMs),
      ...part,
      ...(one.data && { roundTrip: roundTrips }),
    })
  }
  const connections = exchanges.filter(({ kind }) => kind === 'connect').length
  return { connections, roundTrips, exchanges }
}
