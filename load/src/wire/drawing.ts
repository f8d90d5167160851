import type { Exchange } from '../../../apps/demo/src/events.ts'
import { escaped } from '../reporting/bar-chart.ts'

/** The messages between a store and Redis for page views at the same time. */
export interface Recorded {
  readonly strategy: string
  readonly requests: number
  /** When the last view was answered, in microseconds from the start. */
  readonly endUs: number
  readonly exchanges: readonly Exchange[]
}

const [WIDTH, LEFT, RIGHT] = [760, 72, 16]
/** Of a lane: its title, the line of the store, the line of Redis. */
const [LANE, TITLE, STORE, REDIS] = [150, 16, 62, 122]
const [BLUE, GREY] = ['#3f86dd', '#787f88']
const MAX_WORD = 7

/** An SVG image: a lane for each record, with time from left to right on the same axis. */
export function drawing(records: readonly Recorded[]): string {
  const ends = records.flatMap(({ endUs, exchanges }) => [
    endUs,
    ...exchanges.map((one) => one.untilUs),
  ])
  const most = Math.ceil(Math.max(...ends) / 1_000)
  const at = (micros: number) =>
    LEFT + (Math.max(0, micros) / 1_000 / most) * (WIDTH - LEFT - RIGHT)
  const lanes = records.map((record, index) => laneOf(record, index * LANE, at))
  const bottom = records.length * LANE
  const step = most > 10 ? 2 : 1
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, tick) => {
    const text = tick === 0 ? '0 ms' : String(tick * step)
    return `<text x="${at(tick * step * 1_000).toFixed(1)}" y="${bottom + 14}" text-anchor="middle">${text}</text>`
  })
  const [first, last] = [records[0], records.at(-1)]
  const title = `What is on the wire: ${textOf(first)} and ${textOf(last)}, on the same time axis`
  const look = `font-family="system-ui, sans-serif" font-size="11" fill="${GREY}"`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 20}" role="img" aria-label="${escaped(title)}" ${look}>`,
    `<defs>${headOf('blue', BLUE)}${headOf('grey', GREY)}</defs>`,
    ...lanes,
    ...ticks,
    '</svg>\n',
  ].join('\n')
}

const headOf = (id: string, color: string) =>
  `<marker id="${id}" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0 6 3 0 6z" fill="${color}"/></marker>`

const textOf = (record?: Recorded) =>
  record
    ? `${record.strategy}, ${record.requests === 1 ? 'one request' : `${record.requests} requests`}`
    : ''

function laneOf(record: Recorded, top: number, at: (micros: number) => number): string {
  const [store, redis] = [top + STORE, top + REDIS]
  const x = (micros: number) => at(micros).toFixed(1)
  const line = (y: number, name: string) =>
    `<text x="0" y="${y + 4}">${name}</text><line x1="${LEFT}" y1="${y}" x2="${WIDTH - RIGHT}" y2="${y}" stroke="${GREY}" stroke-opacity="0.4"/>`
  const arrow = (
    from: readonly [number, number],
    to: readonly [number, number],
    id: string,
    color: string,
  ) =>
    `<line x1="${x(from[0])}" y1="${from[1]}" x2="${x(to[0])}" y2="${to[1]}" stroke="${color}" stroke-width="1.6" marker-end="url(#${id})"/>`
  const parts = record.exchanges.flatMap((one) => {
    const { kind, atUs, untilUs } = one
    const middle = (atUs + untilUs) / 2
    if (kind === 'receive') return [arrow([atUs, redis], [untilUs, store], 'grey', GREY)]
    if (kind === 'close')
      return [`<text x="${x(atUs)}" y="${redis + 16}" text-anchor="middle">close</text>`]
    const there = kind === 'connect' ? middle : untilUs
    return [
      `<text x="${x(atUs)}" y="${store - 8}">${escaped(labelOf(one))}</text>`,
      arrow([atUs, store], [there, redis], 'blue', BLUE),
      ...(kind === 'connect' ? [arrow([middle, redis], [untilUs, store], 'grey', GREY)] : []),
    ]
  })
  const busy = Array.from(
    { length: record.requests },
    (_, index) =>
      `<rect x="${x(0)}" y="${top + TITLE + 6 + index * 8}" width="${(at(record.endUs) - at(0)).toFixed(1)}" height="5" fill="${BLUE}" fill-opacity="0.35"/>`,
  )
  const title = `<text x="0" y="${top + TITLE - 3}" font-weight="bold">${textOf(record)}</text>`
  return [title, ...busy, line(store, 'your service'), line(redis, 'Redis'), ...parts].join('\n')
}

/** `connect`, `ZADD`, `10 commands`. */
function labelOf({ kind, lines }: Exchange): string {
  if (kind === 'connect') return 'connect'
  if (lines.length > 3) return `${lines.length} commands`
  const word = (lines[0] ?? '').split(' ', 1)[0] ?? ''
  const short = word.length > MAX_WORD ? `${word.slice(0, MAX_WORD - 1)}…` : word
  return lines.length > 1 ? `${short} …` : short
}
