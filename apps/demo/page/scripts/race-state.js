// State of a race, computed from its events. Figures are values of the events or sums of them, never
// smoothed.

/** @typedef {import('../../src/events.ts').Totals} Totals */
/** @typedef {import('../../src/events.ts').Started} Started */
/** @typedef {import('../../src/events.ts').Turn} Turn */
/** @typedef {import('../../src/events.ts').Done} Done */
/** @typedef {import('../../src/events.ts').RaceEvent} RaceEvent */
/** @typedef {{ lane: number, round: number, seconds: number, requestsPerSecond: number, p99Ms: number | null }} Point */
/**
 * @typedef {object} State
 * @property {'idle' | 'running' | 'done' | 'failed'} phase
 * @property {Started | null} race
 * @property {string} text The current preparation step, or why the race failed.
 * @property {Point[]} points Not those of the warm-up.
 * @property {Record<number, { requestsPerSecond: number, p99Ms: number | null }>} latest The last sample of each lane.
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
  latest: {},
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
      const latest = { ...state.latest, [lane]: { requestsPerSecond, p99Ms } }
      if (round === 0) return { ...state, latest, current: { lane, round } }
      const points = [...state.points, { lane, round, seconds, requestsPerSecond, p99Ms }]
      return { ...state, text: '', latest, points, current: { lane, round } }
    }
    case 'turn':
      return { ...state, points: withP99(state.points, data), turns: [...state.turns, data] }
    case 'done':
      return { ...state, phase: 'done', text: '', current: null, done: data }
    case 'failed':
      return { ...state, phase: 'failed', text: data.message, current: null }
    default:
      return state
  }
}

/**
 * With a slow Redis, no sample of a turn has a p99: its responses are too few. Then the last point of the turn gets that
 * of the whole turn.
 *
 * @param {Point[]} points
 * @param {Turn} turn
 */
function withP99(points, { lane, round, p99Ms }) {
  const own = points.filter((point) => point.lane === lane && point.round === round)
  if (own.some((point) => point.p99Ms !== null)) return points
  return points.map((point) => (point === own.at(-1) ? { ...point, p99Ms } : point))
}

/**
 * Values of a lane's card and column; null: not known yet.
 *
 * @param {State} state
 * @param {string} strategy
 * @param {number} lane
 */
export function laneOf({ latest, turns, current, done }, strategy, lane) {
  const own = turns.filter((turn) => turn.lane === lane)
  const result = done?.lanes[lane]
  const lastTurn = own.at(-1)
  const live = current?.lane === lane ? latest[lane] : (lastTurn ?? latest[lane])
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

/**
 * Page views per second of the last lane as a multiple of the first: of the result, or of what the cards show.
 *
 * @param {State} state
 * @param {number} lanes Their number.
 * @returns {number | null} Null if it is not known yet.
 */
export function ratioOf(state, lanes) {
  if (state.done) return state.done.ratio?.median ?? null
  const [first, last] = [0, lanes - 1].map((lane) => laneOf(state, '', lane).requestsPerSecond)
  return first && last ? last / first : null
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
