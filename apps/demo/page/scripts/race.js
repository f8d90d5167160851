import { call, messageFor } from './api.js'
import { createChart } from './chart.js'
import { announce, block, byId, notice, setText, startButton } from './dom.js'
import { listen } from './events.js'
import { figure } from './format.js'
import { after, eventNames, initialState, laneOf, linesOf } from './race-state.js'
import { descriptionOf, onSettings, settings, showSettings } from './settings.js'

/** @typedef {import('./race-state.js').State} State */
/** @typedef {ReturnType<typeof laneOf>} Lane */

const button = byId('race-start', HTMLButtonElement)
const problem = byId('race-problem', HTMLElement)
const status = byId('race-status', HTMLElement)
const progress = byId('race-progress', HTMLProgressElement)
const cards = [byId('card-0', HTMLElement), byId('card-1', HTMLElement)]

let state = initialState
let lanes = /** @type {[string, string]} */ (['', ''])
let frame = 0
/** @type {((isRunning: boolean) => void)[]} */
const listeners = []

/** Calls the listener with whether a race is running, after each change of the race. @param {(isRunning: boolean) => void} listener */
export function onRace(listener) {
  listeners.push(listener)
}

const colours = () =>
  /** @type {[string, string]} */ (lanes.map((name) => `--colour-${name}, var(--colour-other)`))

/**
 * Texts of the table rows, from the totals of a lane.
 *
 * @type {Record<string, (totals: import('./race-state.js').Totals) => string>}
 */
const counters = {
  requests: ({ requests }) => figure(requests),
  connections: ({ connectionsOpened }) => figure(connectionsOpened),
  'round-trips': ({ roundTrips, requests }) => figure(roundTrips / requests),
  commands: ({ commands, requests }) => figure(commands / requests),
  'redis-cpu': ({ redisCpuUs, requests }) => `${figure(redisCpuUs / requests)} µs`,
  'api-cpu': ({ apiCpuUs, requests }) => `${figure(apiCpuUs / requests)} µs`,
  errors: ({ errors }) => figure(errors),
}

/** @param {ParentNode} parent @param {string} selector @param {string} text */
function show(parent, selector, text) {
  const element = parent.querySelector(selector)
  if (element) setText(element, text)
}

/**
 * @param {Element} card
 * @param {Lane} lane
 * @param {number} highest The higher `requestsPerSecond` of both lanes.
 */
function showCard(card, { strategy, isOnTurn, requestsPerSecond, range, p50Ms, p99Ms }, highest) {
  const name = strategy ?? ''
  card.className = `card lane strategy-${name}${isOnTurn ? ' on-turn' : ''}`
  show(card, '.strategy', name)
  show(card, '.description', descriptionOf(name))
  show(card, '.rate', requestsPerSecond === null ? '–' : figure(requestsPerSecond))
  show(card, '.range', range ? `${figure(range.lowest)} to ${figure(range.highest)}` : '')
  show(card, '.p50', p50Ms === null ? '–' : `${figure(p50Ms)} ms`)
  show(card, '.p99', p99Ms === null ? '–' : `${figure(p99Ms)} ms`)
  const bar = card.querySelector('.bar')
  if (bar instanceof HTMLElement)
    bar.style.inlineSize = `${(100 * (requestsPerSecond ?? 0)) / highest}%`
}

/** @param {Lane} lane @param {0 | 1} index */
function showColumn({ strategy, totals }, index) {
  byId(`column-${index}`, HTMLElement).textContent = strategy
  for (const [id, text] of Object.entries(counters)) {
    const cell = byId(`row-${id}`, HTMLElement).children[index + 1]
    if (cell) setText(cell, totals && totals.requests > 0 ? text(totals) : '–')
  }
}

/** @param {State} state */
function statusOf({ race, text, current }) {
  if (text !== '') return `${text}…`
  if (!race || !current) return 'Starting…'
  return `Round ${current.round} of ${race.rounds}`
}

const charts = {
  rate: createChart(byId('chart-rate', HTMLElement), colours),
  p99: createChart(byId('chart-p99', HTMLElement), colours),
}

function draw() {
  const { phase, points } = state
  const isRunning = phase === 'running'
  const [first, second] = [laneOf(state, 0), laneOf(state, 1)]
  lanes = [first.strategy ?? settings().lanes[0], second.strategy ?? settings().lanes[1]]
  const shown = [
    { ...first, strategy: lanes[0] },
    { ...second, strategy: lanes[1] },
  ]
  const highest = Math.max(1, ...shown.map(({ requestsPerSecond }) => requestsPerSecond ?? 0))
  shown.forEach((lane, index) => {
    const card = cards[index]
    if (card) showCard(card, lane, highest)
    showColumn(lane, index === 0 ? 0 : 1)
  })
  for (const name of document.querySelectorAll('.legend .lane')) {
    const index = name.nextElementSibling === null ? 1 : 0
    name.className = `lane strategy-${lanes[index]}`
    setText(name, lanes[index])
  }
  byId('versus', HTMLElement).classList.toggle('idle', phase === 'idle')
  byId('counters', HTMLElement).hidden = shown.every(({ totals }) => totals === null)
  byId('charts', HTMLElement).hidden = points.length === 0
  drawCharts()
  drawProgress()
  setBusy(isRunning)
  for (const listener of listeners) listener(isRunning)
}

function drawCharts() {
  const { race, points } = state
  // On a busy machine a turn can take longer than planned.
  const seconds = Math.max(
    (race?.rounds ?? 0) * (race?.turnSeconds ?? 0),
    ...points.map((point) => point.seconds),
  )
  charts.rate.show(
    linesOf(points, ({ requestsPerSecond }) => requestsPerSecond),
    seconds,
  )
  charts.p99.show(
    linesOf(points, ({ p99Ms }) => p99Ms),
    seconds,
  )
}

function drawProgress() {
  const { phase, race, turns, done, text } = state
  const isRunning = phase === 'running'
  status.hidden = !isRunning
  setText(byId('race-text', HTMLElement), isRunning ? statusOf(state) : '')
  progress.max = race ? race.rounds * 2 : 1
  progress.value = turns.length
  notice(
    byId('race-failed', HTMLElement),
    phase === 'failed' ? `The race ended early. ${text}` : '',
  )
  showResult(done)
}

/** @param {State['done']} done */
function showResult(done) {
  byId('race-sentence', HTMLElement).hidden = done === null
  if (done === null) return
  setText(byId('race-result', HTMLElement), done.sentence)
  setText(byId('race-disturbed', HTMLElement), done.disturbed ?? '')
}

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  block(button, isBusy)
  setText(
    button,
    isBusy ? 'Race in progress' : state.phase === 'idle' ? 'Start the race' : 'Race again',
  )
}

/** @param {import('../../src/events.ts').RaceEvent} event */
function onEvent(event) {
  const before = state
  state = after(state, event)
  if (event.name === 'started') notice(problem, '')
  // Also for a race started in another browser.
  if (state.race && state.race.id !== before.race?.id) showSettings(state.race)
  // After a reconnect the events are replayed; do not announce the same race again.
  if (event.name === 'started' && before.race?.id !== event.data.id) {
    announce('The race has started.')
  }
  if (event.name === 'done') announce(`${event.data.sentence} ${event.data.disturbed ?? ''}`)
  if (event.name === 'failed') announce(`The race ended early. ${event.data.message}`)
  cancelAnimationFrame(frame)
  frame = requestAnimationFrame(draw)
}

async function start() {
  notice(problem, '')
  setBusy(true)
  try {
    await call('POST', '/demo/race', { body: settings() })
  } catch (error) {
    notice(problem, messageFor(error))
    draw()
  }
}

/** Called if `GET /demo` reports a race. */
export function startRace() {
  startButton(button, { hero: 'hero-race', section: 'race' }, () => void start())
  onSettings(() => {
    if (state.phase === 'idle') draw()
  })
  listen('/demo/race/events', eventNames, onEvent)
}
