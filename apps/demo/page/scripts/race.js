import { call, messageFor } from './api.js'
import { createChart } from './chart.js'
import { announce, block, byId, create, notice, setText, showList, startButton } from './dom.js'
import { listen } from './events.js'
import { figure } from './format.js'
import { after, eventNames, initialState, laneOf, linesOf, ratioOf } from './race-state.js'
import { descriptionOf, onSettings, settings, showSettings } from './settings.js'

/** @typedef {import('./race-state.js').State} State */
/** @typedef {ReturnType<typeof laneOf>} Lane */

const button = byId('race-start', HTMLButtonElement)
const all = byId('race-all', HTMLButtonElement)
const copy = byId('race-copy', HTMLButtonElement)
const command = byId('race-command', HTMLElement)
const problem = byId('race-problem', HTMLElement)
const status = byId('race-status', HTMLElement)
const progress = byId('race-progress', HTMLProgressElement)
const versus = byId('versus', HTMLElement)
const card = byId('lane', HTMLTemplateElement)

let state = initialState
/** @type {readonly string[]} */
let lanes = []
let frame = 0
/** @type {((isRunning: boolean) => void)[]} */
const listeners = []

/** Calls the listener with whether a race is running, after each change of the race. @param {(isRunning: boolean) => void} listener */
export function onRace(listener) {
  listeners.push(listener)
}

const colours = () => lanes.map((name) => `--colour-${name}, var(--colour-other)`)

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
 * @param {number} highest The highest `requestsPerSecond` of all lanes.
 */
function showCard(
  card,
  { strategy: name, isOnTurn, requestsPerSecond, range, p50Ms, p99Ms },
  highest,
) {
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

/**
 * Shows texts after the header of a table row.
 *
 * @param {string} id @param {string[]} texts @param {() => HTMLElement} build
 */
function showRow(id, texts, build) {
  const row = byId(id, HTMLTableRowElement)
  while (row.children.length > texts.length + 1) row.lastElementChild?.remove()
  texts.forEach((text, index) => {
    setText(row.children[index + 1] ?? row.appendChild(build()), text)
  })
}

/** @param {Lane[]} shown */
function showTable(shown) {
  showRow('columns', [...lanes], () => create('th', { scope: 'col' }))
  for (const [id, text] of Object.entries(counters)) {
    const texts = shown.map(({ totals }) => (totals && totals.requests > 0 ? text(totals) : '–'))
    showRow(`row-${id}`, texts, () => create('td'))
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
  const { phase, race, done, points } = state
  const isRunning = phase === 'running'
  lanes = race?.lanes ?? done?.lanes.map(({ strategy }) => strategy) ?? settings().lanes
  const shown = lanes.map((strategy, index) => ({ index, ...laneOf(state, strategy, index) }))
  const keyOf = (/** @type {{ index: number }} */ { index }) => String(index)
  const highest = Math.max(1, ...shown.map(({ requestsPerSecond }) => requestsPerSecond ?? 0))
  const newCard = () => /** @type {HTMLElement} */ (card.content.firstElementChild?.cloneNode(true))
  showList(versus, shown, keyOf, newCard, (element, lane) => showCard(element, lane, highest))
  showTable(shown)
  for (const legend of document.querySelectorAll('.legend')) {
    showList(
      legend,
      shown,
      keyOf,
      () => create('span'),
      (name, { strategy }) => {
        name.className = `lane strategy-${strategy}`
        setText(name, strategy)
      },
    )
  }
  versus.classList.toggle('idle', phase === 'idle')
  byId('counters', HTMLElement).hidden = shown.every(({ totals }) => totals === null)
  byId('charts', HTMLElement).hidden = points.length === 0
  drawCharts()
  drawProgress()
  drawRatio()
  setBusy(isRunning)
  for (const listener of listeners) listener(isRunning)
}

/** At the top of the page the ratio replaces the published one. */
function drawRatio() {
  const ratio = ratioOf(state, lanes.length)
  setText(byId('race-ratio', HTMLElement), ratio === null ? '' : `× ${figure(ratio)}`)
  if (ratio === null) return
  setText(byId('hero-ratio', HTMLElement), `× ${figure(ratio)}`)
  const when = state.done ? 'on this machine' : 'on this machine, so far'
  setText(
    byId('hero-what', HTMLElement),
    `as many page views per second with ${lanes.at(-1)} as with ${lanes[0]}, ${when}`,
  )
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
  progress.max = race ? race.rounds * race.lanes.length : 1
  progress.value = turns.length
  notice(
    byId('race-failed', HTMLElement),
    phase === 'failed' ? `The race ended early. ${text}` : '',
  )
  showResult(done)
}

/** @param {State['done']} done */
function showResult(done) {
  for (const [index, step] of document.querySelectorAll('.steps em').entries()) {
    if (step instanceof HTMLElement) notice(step, done?.steps[index] ?? '')
  }
  for (const id of ['race-sentence', 'race-repeat', 'race-share'])
    byId(id, HTMLElement).hidden = done === null
  if (done === null) return
  setText(byId('race-result', HTMLElement), done.sentence)
  setText(byId('race-disturbed', HTMLElement), done.disturbed ?? '')
  byId('race-repeat', HTMLElement).hidden = done.command === null
  setText(command, done.command ?? '')
  setText(copy, 'Copy')
  const paths = ['', '/image.svg', '/image.png']
  document.querySelectorAll('#race-share a').forEach((link, index) => {
    link.setAttribute('href', `/race/${done.id}${paths[index]}`)
  })
}

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  block(button, isBusy)
  block(all, isBusy)
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

/** @param {readonly string[]} strategies */
async function start(strategies) {
  notice(problem, '')
  setBusy(true)
  try {
    await call('POST', '/demo/race', { body: { ...settings(), lanes: strategies } })
  } catch (error) {
    notice(problem, messageFor(error))
    draw()
  }
}

/** Called if `GET /demo` reports a race. @param {import('../../src/events.ts').RaceLimits} limits */
export function startRace({ strategies }) {
  startButton(button, 'hero-race', () => void start(settings().lanes))
  all.disabled = false
  all.addEventListener('click', () => {
    button.scrollIntoView()
    if (all.getAttribute('aria-disabled') !== 'true') void start(strategies)
  })
  copy.hidden = !navigator.clipboard // browsers have it only on localhost and with HTTPS
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(command.textContent)
    setText(copy, 'Copied')
    announce('Copied.')
  })
  onSettings(() => {
    if (state.phase === 'idle') draw()
  })
  listen('/demo/race/events', eventNames, onEvent)
}
