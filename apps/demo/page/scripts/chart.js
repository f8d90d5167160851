import uPlot from '/page/uplot/uPlot.esm.js'
import { create } from './dom.js'
import { linesOf } from './race-state.js'

/** @typedef {ReturnType<typeof linesOf>} Lines */

const compact = new Intl.NumberFormat('en-US', { notation: 'compact' })
const HEIGHT = 200
const EMPTY = linesOf([], () => null)
/** Per lane, as in the legend (race.css). */
const PATTERNS = [{ dash: [6, 3] }, {}, { dash: [2, 3] }, { width: 4 }]

/** @param {string} name */
const variable = (name) => getComputedStyle(document.body).getPropertyValue(name).trim()

/**
 * Creates a chart of a line per lane over the seconds of a race. The lines differ by pattern as well as colour.
 *
 * @param {HTMLElement} parent
 * @param {() => string[]} colours CSS variables, by lane.
 */
export function createChart(parent, colours) {
  const place = create('div', { class: 'plot', 'aria-hidden': 'true' })
  parent.append(place)
  let seconds = 1
  const colour = (/** @type {string} */ name) => () => resolved(name)
  /** @returns {uPlot.Axis} */
  const axis = () => ({
    stroke: colour('--muted'),
    font: `12px ${variable('--font')}`,
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { show: false },
  })
  /** @param {object} pattern @param {number} lane @returns {uPlot.Series} */
  const series = (pattern, lane) => ({
    stroke: () => resolved(colours()[lane] ?? '--colour-other'),
    width: 2,
    ...pattern,
    spanGaps: true,
    points: { show: false },
  })
  const plot = new uPlot(
    {
      width: Math.max(120, place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 16, 0, 0],
      scales: {
        x: { time: false, range: () => [0, seconds] },
        y: { range: (_plot, _low, high) => [0, (high || 1) * 1.1] },
      },
      axes: [
        { ...axis(), size: 28, values: (_plot, values) => values.map((value) => `${value} s`) },
        {
          ...axis(),
          size: 46,
          values: (_plot, values) => values.map((value) => compact.format(value)),
        },
      ],
      series: [{}, ...PATTERNS.map(series)],
    },
    EMPTY,
    place,
  )
  new ResizeObserver(() => {
    if (place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: HEIGHT })
  }).observe(place)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw())
  return {
    /** @param {Lines} lines @param {number} untilSeconds */
    show(lines, untilSeconds) {
      seconds = untilSeconds
      plot.setData(lines)
    },
  }
}

const probe = create('span', { hidden: '' })

/** Resolves the colour of a CSS variable, because a canvas does not support `light-dark()`. @param {string} name */
function resolved(name) {
  if (!probe.isConnected) document.body.append(probe)
  probe.style.color = `var(${name})`
  return getComputedStyle(probe).color
}
