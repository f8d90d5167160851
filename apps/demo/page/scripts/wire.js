import { call, messageFor } from './api.js'
import { announce, block, byId, create, createSvg, notice, setText, startButton } from './dom.js'
import { duration } from './format.js'
import { onRace } from './race.js'
import { distanceOf, onSettings, settings } from './settings.js'
import { clip, LINE_HEIGHT, layout, summaryOf, textOf, withoutTimes } from './wire-layout.js'

/** @typedef {import('./wire-layout.js').Wire} Wire */
/** @typedef {ReturnType<typeof layout>[number]} Lane */

/** Duration of the animation of the longer diagram. */
const PLAY_MS = 2_600
const CHARACTER_WIDTH = 7.25
const TOP = 34

const button = byId('wire-send', HTMLButtonElement)
const diagrams = byId('wire-diagrams', HTMLElement)
const problem = byId('wire-problem', HTMLElement)
const note = byId('wire-note', HTMLElement)

/** @type {readonly Wire[]} */
let shown = []
let width = 0

/** @param {Lane} lane @param {number} pixels */
function diagram({ wire, groups, labels, pixelsPerUs, longestUs, endUs, height, ticks }, pixels) {
  const isNarrow = pixels < 440
  const api = isNarrow ? 44 : 60
  const redis = isNarrow ? 96 : 150
  const text = redis + (isNarrow ? 12 : 24)
  const characters = Math.floor((pixels - text) / CHARACTER_WIDTH)
  const y = (/** @type {number} */ us) => TOP + us * pixelsPerUs
  const bottom = TOP + height + 8
  const id = `wire-${wire.strategy}-${Math.random().toString(36).slice(2, 8)}`
  const svg = createSvg(
    'svg',
    {
      role: 'img',
      'aria-labelledby': `${id}-title ${id}-description`,
      width: pixels,
      height: bottom,
      viewBox: `0 0 ${pixels} ${bottom}`,
    },
    createSvg('title', { id: `${id}-title` }, `One page view through ${wire.strategy}`),
    createSvg(
      'desc',
      { id: `${id}-description` },
      `${summaryOf(wire)}, answered after ${duration(wire.http.endUs)}. The list below has every step.`,
    ),
  )
  const add = (/** @type {SVGElement[]} */ ...elements) => svg.append(...elements)

  for (const us of ticks) {
    add(
      createSvg('path', { class: 'grid', d: `M${api - 5} ${y(us)}H${redis}` }),
      createSvg(
        'text',
        { class: 'tick', x: api - 9, y: y(us) + 4, 'text-anchor': 'end' },
        us === 0 ? '0' : duration(us),
      ),
    )
  }
  for (const [x, name] of /** @type {const} */ ([
    [api, 'API'],
    [redis, 'Redis'],
  ])) {
    add(
      createSvg('text', { class: 'end', x, y: 14, 'text-anchor': 'middle' }, name),
      createSvg('path', { class: 'life', d: `M${x} 22V${y(endUs)}` }),
      createSvg('path', { class: 'life after', d: `M${x} ${y(endUs)}V${y(longestUs) + 8}` }),
    )
  }
  add(createSvg('path', { class: 'busy', d: `M${api} ${y(0)}V${y(wire.http.endUs)}` }))

  groups.forEach((group) => {
    const part = createSvg('g', { class: `group ${group.kind}`, 'data-at': group.startUs })
    const corners = group.exchanges.map(({ kind, atUs, untilUs }) => {
      if (kind === 'connect') {
        const middle = y((atUs + untilUs) / 2)
        return `L${api} ${y(atUs)}L${redis} ${middle}L${api} ${y(untilUs)}`
      }
      const [from, to] = kind === 'receive' ? [redis, api] : [api, redis]
      return `L${from} ${y(atUs)}L${to} ${y(untilUs)}`
    })
    const outline = corners.join('').replace('L', 'M')
    if (group.kind === 'trip') part.append(createSvg('path', { class: 'area', d: `${outline}Z` }))
    part.append(createSvg('path', { class: 'arrow', d: outline }))
    for (const { kind, untilUs } of group.exchanges) {
      const toApi = kind !== 'send' && kind !== 'close'
      const x = toApi ? api : redis
      part.append(createSvg('circle', { class: 'tip', cx: x, cy: y(untilUs), r: 3 }))
    }
    add(part)
  })

  for (const { kind, roundTrip, title, lines, atUs, top, y: at } of labels) {
    const part = createSvg('g', { class: `label ${kind}`, 'data-at': atUs })
    const first = TOP + top + LINE_HEIGHT / 2
    const elbow = text - (isNarrow ? 5 : 10)
    const from = kind === 'trip' || kind === 'connect' || kind === 'close' ? redis : api
    part.append(
      createSvg('path', {
        class: 'leader',
        d: `M${from} ${TOP + at}H${redis + 4}L${elbow} ${first}H${text - 3}`,
      }),
      createSvg(
        'text',
        { class: 'title', x: text + (roundTrip === undefined ? 0 : 23), y: first + 4 },
        title,
      ),
    )
    if (roundTrip !== undefined) {
      part.append(
        createSvg('circle', { class: 'number', cx: text + 8, cy: first, r: 8 }),
        createSvg(
          'text',
          { class: 'number', x: text + 8, y: first + 4, 'text-anchor': 'middle' },
          String(roundTrip),
        ),
      )
    }
    lines.forEach((line, index) => {
      const baseline = first + 4 + LINE_HEIGHT * (index + 1)
      const reply = clip(line.reply, Math.floor(characters * 0.4))
      const room = characters - (reply === '' ? 0 : reply.length + 2)
      part.append(
        createSvg(
          'text',
          { class: 'command', x: text, y: baseline },
          clip(withoutTimes(line.text), room),
          createSvg('title', {}, [line.text, line.reply].filter(Boolean).join(' → ')),
        ),
        createSvg(
          'text',
          { class: 'reply', x: pixels - 2, y: baseline, 'text-anchor': 'end' },
          reply,
        ),
      )
    })
    add(part)
  }
  return svg
}

/** @param {Lane} lane */
function figure(lane) {
  const { wire } = lane
  const place = create('div', { class: 'diagram' })
  return {
    place,
    element: create(
      'figure',
      { class: `lane strategy-${wire.strategy}` },
      create(
        'figcaption',
        {},
        create('span', { class: 'strategy' }, wire.strategy),
        create('span', { class: 'big' }, duration(wire.http.endUs)),
        create('span', { class: 'muted' }, summaryOf(wire)),
      ),
      place,
      create(
        'details',
        { class: 'small' },
        create('summary', {}, 'As text'),
        create('ol', {}, ...textOf(wire).map((line) => create('li', {}, line))),
      ),
    ),
  }
}

/** Draws the diagrams at the available width. */
function draw() {
  if (shown.length === 0) return
  const lanes = layout(shown)
  const figures = lanes.map(figure)
  diagrams.replaceChildren(...figures.map(({ element }) => element))
  width = diagrams.clientWidth
  figures.forEach(({ place }, index) => {
    const lane = lanes[index]
    if (lane) place.replaceChildren(diagram(lane, place.clientWidth))
  })
}

/** Animates both diagrams in slow motion, at the same speed. */
function play() {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return
  const msPerUs = PLAY_MS / (layout(shown)[0]?.longestUs ?? 1)
  for (const part of diagrams.querySelectorAll('[data-at]')) {
    const delay = Number(part.getAttribute('data-at')) * msPerUs
    part.animate({ opacity: [0, 1] }, { delay, duration: 160, fill: 'backwards' })
  }
}

let isRaceRunning = false

async function send() {
  const { lanes, distanceMs } = settings()
  block(button, true)
  button.textContent = 'Sending…'
  notice(problem, '')
  try {
    const answer = await call('POST', '/demo/wire', { body: { lanes, distanceMs } })
    shown = answer.lanes
    diagrams.hidden = false
    draw()
    play()
    const [first, second] = shown
    if (first && second) {
      announce(
        `${first.strategy}: ${summaryOf(first)}, ${duration(first.http.endUs)}. ` +
          `${second.strategy}: ${summaryOf(second)}, ${duration(second.http.endUs)}.`,
      )
    }
  } catch (error) {
    notice(problem, messageFor(error))
  } finally {
    block(button, isRaceRunning)
    button.textContent = shown.length > 0 ? 'Send again' : 'Send one page view'
  }
}

/** Called if `GET /demo` reports a race. */
export function startWire() {
  startButton(button, 'hero-wire', () => void send())
  const showNote = () => {
    const { lanes, distanceMs } = settings()
    setText(
      note,
      isRaceRunning
        ? 'Race in progress: send a page view when it has ended'
        : `${lanes.join(' and ')}, ${distanceOf(distanceMs)}`,
    )
  }
  onSettings(showNote)
  onRace((isRunning) => {
    if (isRunning !== isRaceRunning) block(button, isRunning)
    isRaceRunning = isRunning
    showNote()
  })
  new ResizeObserver(() => {
    if (diagrams.clientWidth !== width) draw()
  }).observe(diagrams)
}
