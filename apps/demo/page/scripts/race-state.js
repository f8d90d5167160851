// State of a race, computed from its events. Figures are values of the events or sums of them, never
// smoothed.

/** @typedef {import('../../src/events.ts').Totals} Totals */
/** @typedef {import('../../src/events.ts').Started} Started */
/** @typedef {import('../../src/events.ts').Turn} Turn */
/** @typedef {import('../../src/events.ts').Done} Done */
/** @typedef {import('../../src/events.ts').RaceEvent} RaceEvent */
/** @typedef {{ lane: number, seconds: number, requestsPerSecond: number, p99Ms: number | null }} Point */
/**
 * @typedef {object} State
 * @property {'idle' | 'running' | 'done' | 'failed'} phase
 * @property {Started | null} race
 * @property {string} text The current preparation step, or why the race failed.
 * @property {Point[]} points
 * @property {Turn[]} turns
 * @property {{ lane: number, round: number } | null} current Lane whose turn it is.
 * @property {Done | null} done
 */

/** The most lanes of a race. */
const MAX_LANES = 4

export const eventNames = ['state', 'started', 'preparing', 'sample', 'turn', 'done', 'failed']

/** @type {State} */
export const initialState = {
  phase: 'idle',
  race: null,
  text: '',
  points: [],
  turns: [],
  current: null,
  done: null,
}

/** @param {Started} race @returns {State} */
const startOf = (race) => ({ ...initialState, phase: 'running', race })

/**
 * Returns the state after an event.
 *
 * @param {State} state
 * @param {RaceEvent} event
 * @returns {State}
 */
export function after(state, { name, data }) {
  switch (name) {
    case 'state':
      if (data.running && data.race) return startOf(data.race)
      // After a reconnect, keep the lines of the race that is shown.
      if (data.last && data.last.id === state.done?.id) return state
      return data.last ? { ...initialState, phase: 'done', done: data.last } : initialState
    case 'started':
      return startOf(data)
    case 'preparing':
      return { ...state, text: data.text }
    case 'sample': {
      const { lane, round, atMs, requestsPerSecond, p99Ms } = data
      // The time axis of a lane consists of its own turns, one after the other.
      const seconds = (round - 1) * (state.race?.turnSeconds ?? 1) + atMs / 1000
      const points = [...state.points, { lane, seconds, requestsPerSecond, p99Ms }]
      return { ...state, text: '', points, current: { lane, round } }
    }
    case 'turn':
      return { ...state, turns: [...state.turns, data] }
    case 'done':
      return { ...state, phase: 'done', text: '', current: null, done: data }
    case 'failed':
      return { ...state, phase: 'failed', text: data.message, current: null }
    default:
      return state
  }
}

/**
 * Values of a lane's card and column; null: not known yet.
 *
 * @param {State} state
 * @param {string} strategy
 * @param {number} lane
 */
export function laneOf({ points, turns, current, done }, strategy, lane) {
  const own = turns.filter((turn) => turn.lane === lane)
  const result = done?.lanes[lane]
  const latest = points.findLast((point) => point.lane === lane)
  const lastTurn = own.at(-1)
  const live = current?.lane === lane ? latest : (lastTurn ?? latest)
  return {
    strategy,
    isOnTurn: current?.lane === lane,
    requestsPerSecond: result?.requestsPerSecond.median ?? live?.requestsPerSecond ?? null,
    range: result?.requestsPerSecond ?? null,
    p99Ms: result ? result.p99Ms : (live?.p99Ms ?? null),
    p50Ms: result ? result.p50Ms : (lastTurn?.p50Ms ?? null),
    totals: result ?? (own.length > 0 ? sumOf(own) : null),
  }
}

/** Sums every figure of the turns. @param {Turn[]} turns @returns {Totals} */
const sumOf = (turns) =>
  turns.reduce((sum, turn) => {
    const names = /** @type {(keyof Totals)[]} */ (Object.keys(sum))
    return { ...turn, ...Object.fromEntries(names.map((name) => [name, sum[name] + turn[name]])) }
  })

/**
 * Returns the points in uPlot's format: a common list of seconds, then a list of values for each of `MAX_LANES`.
 *
 * @param {readonly Point[]} points
 * @param {(point: Point) => number | null} valueFrom
 * @returns {[number[], ...(number | null)[][]]}
 */
export function linesOf(points, valueFrom) {
  const sorted = points.toSorted((a, b) => a.seconds - b.seconds)
  const lines = Array.from({ length: MAX_LANES }, (_, lane) =>
    sorted.map((point) => (point.lane === lane ? valueFrom(point) : null)),
  )
  return [sorted.map(({ seconds }) => seconds), ...lines]
}
