import { expect, test } from 'vitest'
import {
  after as afterEvent,
  initialState,
  laneOf as laneOfState,
  linesOf,
  ratioOf,
  type State,
} from '../page/scripts/race-state.js'

const after = afterEvent as (state: State, event: { name: string; data: unknown }) => State

const laneOf = (state: State, lane: number) => laneOfState(state, race.lanes[lane] ?? '', lane)

const race = { id: 'a', lanes: ['naive', 'batch'], rounds: 2, turnSeconds: 1 }
const started = { name: 'started', data: race }
const sample = (
  lane: number,
  round: number,
  atMs: number,
  requestsPerSecond: number,
  p99Ms: number | null = 5,
) => ({
  name: 'sample',
  data: { lane, round, atMs, requestsPerSecond, p99Ms },
})
const counts = { connectionsOpened: 2, roundTrips: 3, commands: 4, redisCpuUs: 5, apiCpuUs: 6 }
const turn = (lane: number, round: number, requests: number) => ({
  name: 'turn',
  data: { lane, round, requests, requestsPerSecond: requests, p99Ms: 7, errors: 1, ...counts },
})
const range = { median: 150.5, lowest: 100, highest: 201 }
const result = { requests: 301, requestsPerSecond: range, p50Ms: 1.5, p99Ms: 9 }
const lanes = [
  { ...result, strategy: 'naive' },
  { ...result, strategy: 'batch', p99Ms: null },
]
const done = {
  name: 'done',
  data: { id: 'a', lanes, ratio: { median: 9, lowest: 8, highest: 11 } },
}
const idle = { name: 'state', data: { running: false, race: null, last: null } }
const play = (...events: { name: string; data: unknown }[]): State =>
  events.reduce(after, initialState)

test('a race from its start to its end', () => {
  expect(laneOf(play(idle), 0)).toMatchObject({ requestsPerSecond: null, totals: null })
  let state = play(idle, started, { name: 'preparing', data: { text: 'Warming up' } })
  state = [sample(0, 0, 250, 70), sample(1, 0, 250, 630)].reduce(after, state)
  expect(state).toMatchObject({ phase: 'running', race, text: 'Warming up', points: [] })
  expect(laneOf(state, 1)).toMatchObject({ isOnTurn: true, requestsPerSecond: 630 })
  expect(ratioOf(state, 2)).toBe(9)

  state = after(state, sample(0, 1, 250, 90))
  expect([state.text, ratioOf(state, 2)]).toEqual(['', 7])
  expect(laneOf(state, 0)).toMatchObject({ isOnTurn: true, requestsPerSecond: 90, p99Ms: 5 })
  state = [turn(0, 1, 100), sample(1, 1, 250, 900), turn(1, 1, 1_000)].reduce(after, state)
  expect(laneOf(state, 0)).toMatchObject({ isOnTurn: false, requestsPerSecond: 100, p99Ms: 7 })
  state = [turn(1, 2, 1_100), sample(0, 2, 250, 190), turn(0, 2, 201)].reduce(after, state)
  expect(laneOf(state, 0).totals).toMatchObject({ requests: 301, errors: 2, apiCpuUs: 12 })

  state = after(state, done)
  expect(state.phase).toBe('done')
  expect(laneOf(state, 0)).toMatchObject({ requestsPerSecond: 150.5, range, p50Ms: 1.5, p99Ms: 9 })
  expect(laneOf(state, 1)).toMatchObject({ isOnTurn: false, p99Ms: null })
})

test('a failed race keeps its points, and the next race starts without them', () => {
  const failure = { name: 'failed', data: { id: 'a', message: 'Redis was stopped.' } }
  const failed = play(idle, started, sample(0, 1, 250, 90), failure)
  expect(failed).toMatchObject({ phase: 'failed', text: 'Redis was stopped.', current: null })
  expect(failed.points).toHaveLength(1)
  const next = { phase: 'running', text: '', points: [], turns: [] }
  expect(after(failed, started)).toMatchObject(next)
})

test('a page that connects or reconnects during a race gets its earlier events once', () => {
  const running = { name: 'state', data: { running: true, race, last: done.data } }
  const replay = [running, started, sample(0, 1, 250, 90), turn(0, 1, 100)]
  const state = play(...replay)
  expect(state).toMatchObject({ phase: 'running', done: null })
  expect(after(state, running)).toMatchObject({ phase: 'running', race, points: [], turns: [] })
  expect(replay.reduce(after, state)).toEqual(state)
})

test('a page opened after a race shows its result; a page that watched it keeps its lines', () => {
  const over = { name: 'state', data: { running: false, race: null, last: done.data } }
  expect(play(over)).toMatchObject({ phase: 'done', done: done.data, points: [] })
  const seen = play(started, sample(0, 1, 250, 90), done)
  expect(after(seen, over)).toBe(seen)
  expect(after(seen, idle)).toEqual(initialState)
})

test('a line joins the turns of its lane without changing a value', () => {
  const samples = [sample(0, 1, 250, 91), sample(1, 1, 250, 901), sample(1, 2, 500, 950)]
  const { points } = play(started, ...samples, sample(0, 2, 250, 92))
  expect(linesOf(points, ({ requestsPerSecond }) => requestsPerSecond)).toEqual([
    [0.25, 0.25, 1.25, 1.5],
    [91, null, 92, null],
    [null, 901, null, 950],
    [null, null, null, null],
    [null, null, null, null],
  ])
})

test('if no sample of a turn has a p99, the line has that of the turn', () => {
  const slow = [1, 2].flatMap((round) => [sample(0, round, 250, 0, null), turn(0, round, 90)])
  const { points } = play(started, sample(1, 1, 250, 900, 4), turn(1, 1, 900), ...slow)
  expect(linesOf(points, ({ p99Ms }) => p99Ms).slice(0, 3)).toEqual([
    [0.25, 0.25, 1.25],
    [null, 7, 7],
    [4, null, null],
  ])
})
