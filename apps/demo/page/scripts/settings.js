import { byId, create } from './dom.js'

// Settings of the race and the wire diagram: two strategies, connections, and the latency to Redis.

/** @typedef {import('../../src/events.ts').RaceInput} Settings */

/** @type {Record<string, string>} */
const descriptions = {
  naive: 'A new connection per page view. One command at a time.',
  sequential: 'A shared connection. One command at a time.',
  pipeline: 'A shared connection. All commands in one round trip.',
  batch: 'A shared connection. Page views share a round trip.',
}

/** One-line description of a strategy. @param {string} strategy */
export const descriptionOf = (strategy) => descriptions[strategy] ?? ''

/** @param {number} distanceMs */
export const distanceOf = (distanceMs) =>
  distanceMs === 0 ? 'Redis on this machine' : `Redis ${distanceMs} ms away`

const form = byId('settings', HTMLFormElement)
const selects = {
  first: byId('lane-0', HTMLSelectElement),
  second: byId('lane-1', HTMLSelectElement),
  connections: byId('connections', HTMLSelectElement),
}
const distances = byId('distances', HTMLElement)

/** The selected settings. @returns {Settings} */
export function settings() {
  const { first, second, connections } = selects
  return {
    lanes: [first.value, second.value],
    connections: Number(connections.value),
    distanceMs: Number(new FormData(form).get('distance')),
  }
}

/** Calls the listener now and after each change. @param {(settings: Settings) => void} listener */
export function onSettings(listener) {
  form.addEventListener('change', () => listener(settings()))
  listener(settings())
}

/** Selects these settings, for example those of a race started in another browser. @param {Settings} chosen */
export function showSettings({
  lanes: [first = '', second = '', ...more],
  connections,
  distanceMs,
}) {
  if (more.length === 0) {
    selects.first.value = first
    selects.second.value = second
  }
  choose(selects.connections, connections)
  for (const input of distances.querySelectorAll('input')) {
    input.checked = Number(input.value) === distanceMs
  }
  form.dispatchEvent(new Event('change'))
}

/** @param {HTMLSelectElement} select @param {number} value */
function choose(select, value) {
  const text = String(value)
  const known = Array.from(select.options, (option) => option.value)
  if (!known.includes(text)) select.append(new Option(text, text))
  select.value = text
}

/**
 * Fills the controls.
 *
 * @param {import('../../src/events.ts').RaceLimits} limits
 */
export function startSettings({ strategies, connections, distancesMs }) {
  for (const [select, preferred] of /** @type {const} */ ([
    [selects.first, 'naive'],
    [selects.second, 'batch'],
  ])) {
    select.replaceChildren(...strategies.map((name) => new Option(name, name)))
    select.value = strategies.includes(preferred) ? preferred : (strategies[0] ?? '')
  }
  const counts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].filter(
    (count) => count >= connections.minimum && count <= connections.maximum,
  )
  selects.connections.replaceChildren(
    ...counts.map((count) => new Option(String(count), String(count))),
  )
  choose(selects.connections, connections.default)
  distances.replaceChildren(
    ...distancesMs.map((ms, index) => {
      const input = create('input', { type: 'radio', name: 'distance', value: String(ms) })
      input.checked = index === 0
      return create('label', {}, input, create('span', {}, `${ms} ms`))
    }),
  )
}
