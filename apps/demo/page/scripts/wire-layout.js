// Layout of the sequence diagrams. Time runs from top to bottom, with one scale for both lanes, so that their
// lengths are comparable. Only labels are moved, to avoid overlaps.

import { counted, duration } from './format.js'

/** @typedef {import('../../src/events.ts').Exchange} Exchange */
/** @typedef {import('../../src/events.ts').Wire} Wire */
/** @typedef {{ text: string, reply: string }} Line A command and its reply. */
/** @typedef {'connect' | 'trip' | 'close'} GroupKind */
/**
 * @typedef {object} Group A round trip, or the opening or closing of a connection.
 * @property {GroupKind} kind
 * @property {number | undefined} roundTrip
 * @property {number} startUs
 * @property {number} endUs
 * @property {string} title
 * @property {Line[]} lines
 * @property {Exchange[]} exchanges
 */

export const LINE_HEIGHT = 17
const GAP = 9
const MIN_HEIGHT = 420
const TICK_DISTANCE = 64

/** @param {Exchange[]} exchanges @param {Exchange['kind']} kind */
const linesOf = (exchanges, kind) =>
  exchanges.filter((one) => one.kind === kind).flatMap(({ lines }) => lines)

/**
 * Returns commands next to their replies if each command has one; otherwise all commands, then all replies.
 *
 * @param {Exchange[]} exchanges
 * @returns {Line[]}
 */
function pairs(exchanges) {
  const [sent, received] = [linesOf(exchanges, 'send'), linesOf(exchanges, 'receive')]
  if (sent.length === received.length) {
    return sent.map((text, index) => ({ text, reply: received[index] ?? '' }))
  }
  return [
    ...sent.map((text) => ({ text, reply: '' })),
    ...received.map((reply) => ({ text: '', reply })),
  ]
}

/**
 * The groups of a page view, in the order of time.
 *
 * @param {Wire} wire
 * @returns {Group[]}
 */
function groupsOf({ exchanges }) {
  /** @type {Map<string, Exchange[]>} */
  const byGroup = new Map()
  exchanges.forEach((exchange, index) => {
    const { kind, roundTrip } = exchange
    const key = roundTrip === undefined ? `${kind} ${index}` : `trip ${roundTrip}`
    byGroup.set(key, [...(byGroup.get(key) ?? []), exchange])
  })
  return [...byGroup.values()].map((group) => {
    const startUs = Math.min(...group.map(({ atUs }) => atUs))
    const endUs = Math.max(...group.map(({ untilUs }) => untilUs))
    const { kind, roundTrip } = group[0] ?? { kind: 'close' }
    const common = { roundTrip, startUs, endUs, exchanges: group, lines: pairs(group) }
    const took = duration(endUs - startUs)
    if (kind === 'connect') return { ...common, kind, title: `connect, ${took}` }
    if (kind === 'close') return { ...common, kind, title: 'close' }
    return { ...common, kind: 'trip', title: `round trip, ${took}` }
  })
}

/**
 * Moves labels as little as needed so that they do not overlap and, if possible, end above `bottom`.
 *
 * @param {readonly { y: number, height: number }[]} wanted From top to bottom.
 * @param {number} bottom
 * @returns {number[]} The top of each.
 */
export function spread(wanted, bottom) {
  /** @type {number[]} */
  const tops = []
  let from = 0
  for (const { y, height } of wanted) {
    tops.push(Math.max(y, from))
    from = (tops.at(-1) ?? 0) + height + GAP
  }
  let until = Math.max(bottom, heightOf(wanted))
  for (let index = wanted.length - 1; index >= 0; index--) {
    const { height } = wanted[index] ?? { height: 0 }
    tops[index] = Math.min(tops[index] ?? 0, until - height)
    until = (tops[index] ?? 0) - GAP
  }
  return tops
}

/** @param {readonly { height: number }[]} labels */
const heightOf = (labels) =>
  labels.reduce((sum, { height }) => sum + height + GAP, 0) - (labels.length > 0 ? GAP : 0)

/**
 * Returns round times for the axis from 0 to `untilUs`, at least 64 pixels apart.
 *
 * @param {number} untilUs
 * @param {number} pixelsPerUs
 */
function ticks(untilUs, pixelsPerUs) {
  const atLeastUs = TICK_DISTANCE / pixelsPerUs
  const power = 10 ** Math.floor(Math.log10(atLeastUs))
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= atLeastUs) ?? 10)
  return Array.from({ length: Math.floor(untilUs / step) + 1 }, (_, index) => index * step)
}

/** @param {Wire} wire */
const endOf = (wire) => Math.max(wire.http.endUs, ...wire.exchanges.map(({ untilUs }) => untilUs))

/**
 * @typedef {object} Label
 * @property {GroupKind | 'request' | 'answer' | 'later'} kind
 * @property {number | undefined} roundTrip
 * @property {number} atUs
 * @property {string} title
 * @property {Line[]} lines
 */

/**
 * @param {Wire} wire
 * @param {Wire | undefined} slower The other lane, if its response came later.
 * @returns {Label[]}
 */
function labelsOf(wire, slower) {
  const { endUs } = wire.http
  const plain = { roundTrip: undefined, lines: [] }
  /** @type {Label[]} */
  const labels = [
    { ...plain, kind: 'request', atUs: 0, title: 'page view' },
    ...groupsOf(wire).map(({ startUs, ...group }) => ({ ...group, atUs: startUs })),
    { ...plain, kind: 'answer', atUs: endUs, title: `answered after ${duration(endUs)}` },
  ]
  if (slower) {
    const title = `${slower.strategy}: ${duration(slower.http.endUs - endUs)} later`
    labels.push({ ...plain, kind: 'later', atUs: slower.http.endUs, title })
  }
  return labels.toSorted((a, b) => a.atUs - b.atUs)
}

/**
 * Computes the layout of diagrams side by side, in pixels from the top.
 *
 * @param {readonly Wire[]} wires
 */
export function layout(wires) {
  const longestUs = Math.max(1, ...wires.map(endOf))
  const slowest = wires.toSorted((a, b) => b.http.endUs - a.http.endUs)[0]
  const parts = wires.map((wire) => {
    const slower = slowest && slowest.http.endUs > wire.http.endUs ? slowest : undefined
    const labels = labelsOf(wire, slower).map((label) => ({
      ...label,
      height: LINE_HEIGHT * (1 + label.lines.length),
    }))
    return { wire, labels }
  })
  const pixelsPerUs =
    Math.max(MIN_HEIGHT, ...parts.map(({ labels }) => heightOf(labels))) / longestUs
  const y = (/** @type {number} */ us) => us * pixelsPerUs
  return parts.map(({ wire, labels }) => {
    const wanted = labels.map(({ atUs, height }) => ({ y: y(atUs) - LINE_HEIGHT / 2, height }))
    const tops = spread(wanted, y(longestUs) + LINE_HEIGHT)
    return {
      wire,
      groups: groupsOf(wire),
      labels: labels.map((label, index) => ({ ...label, y: y(label.atUs), top: tops[index] ?? 0 })),
      pixelsPerUs,
      longestUs,
      endUs: endOf(wire),
      height: Math.max(
        y(longestUs),
        ...labels.map(({ height }, index) => (tops[index] ?? 0) + height),
      ),
      ticks: ticks(longestUs, pixelsPerUs),
    }
  })
}

/**
 * Describes a page view as text, one line per step.
 *
 * @param {Wire} wire
 */
export function textOf(wire) {
  const at = (/** @type {number} */ us) => `after ${duration(us)}`
  return [
    ...groupsOf(wire).map(({ startUs, title, roundTrip, lines }) => {
      const words = lines.map(({ text, reply }) =>
        [text, reply].filter((part) => part !== '').join(' → '),
      )
      const name = roundTrip === undefined ? title : title.replace('trip', `trip ${roundTrip}`)
      return `${at(startUs)}: ${[name, ...words].join('; ')}`
    }),
    `${at(wire.http.endUs)}: answered`,
  ]
}

const GREETING = /^(AUTH|CLIENT|HELLO|INFO|QUIT|SELECT)\b/

/** `8 round trips (3 for connection setup and QUIT), 1 connection opened`. @param {Wire} wire */
export function summaryOf(wire) {
  const greetings = groupsOf(wire).filter(
    ({ kind, lines }) => kind === 'trip' && lines.every(({ text }) => GREETING.test(text)),
  )
  const setup = greetings.length > 0 ? ` (${greetings.length} for connection setup and QUIT)` : ''
  const opened = `${counted(wire.connections, 'connection')} opened`
  return `${counted(wire.roundTrips, 'round trip')}${setup}, ${opened}`
}

/** Replaces the times in a command with `<now>`, because they are long. @param {string} text */
export const withoutTimes = (text) => text.replaceAll(/\b\d{10,}(\.\d+)?\b/g, '<now>')

/**
 * Cuts a text to a number of characters.
 *
 * @param {string} text
 * @param {number} characters
 */
export const clip = (text, characters) =>
  text.length <= characters ? text : `${text.slice(0, Math.max(0, characters - 1))}…`
