import { figure } from '../../page/scripts/format.js'
import type { Done } from '../events.ts'

// An image of a result in the size that messengers and social networks show for a link.

const [WIDTH, HEIGHT] = [1_200, 630]
const MARGIN = 60
const RIGHT = WIDTH - MARGIN
/** Characters of a line in the font size of the sentence. */
const CHARACTERS = 78

/** Those of page/styles/theme.css. */
const COLOURS: Readonly<Record<string, string>> = {
  naive: '#c84e00',
  sequential: '#a3477f',
  pipeline: '#00786c',
  batch: '#0068b0',
}

export const milliseconds = (value: number | null): string =>
  value === null ? '–' : `${figure(value)} ms`

/** `64 HTTP connections, Redis 1 ms away, AMD EPYC, 2 cores, 2026-11-24`. */
export function conditionsOf({ connections, distanceMs, machine, date }: Done): string {
  const distance = distanceMs > 0 ? [`Redis ${distanceMs} ms away`] : []
  return [`${connections} HTTP connections`, ...distance, machine, date.slice(0, 10)].join(', ')
}

/** Escapes text for HTML and SVG. */
export const escaped = (text: string): string =>
  text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Breaks a text into lines at spaces. */
function linesOf(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length >= CHARACTERS) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`.trim()
  }
  return lines.slice(0, 3)
}

/** Ratio, rates with proportional bars, p50 and p99, the conditions and the command, as SVG. */
export function imageOf(result: Done): string {
  const { lanes, ratio, sentence, command } = result
  const highest = Math.max(1, ...lanes.map(({ requestsPerSecond }) => requestsPerSecond.median))
  const text = (x: number, y: number, size: number, content: string, more = '') =>
    `<text x="${x}" y="${y}" font-size="${size}" ${more}>${escaped(content)}</text>`
  const top = ratio ? 240 : 160
  const sentences = linesOf(sentence)
  const row = Math.min(88, (HEIGHT - 90 - top - 34 * sentences.length) / lanes.length)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="DejaVu Sans, Verdana, sans-serif" fill="#1b1f24">`,
    `<title>${escaped(sentence)}</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(MARGIN, 82, 30, 'Onetrip: every page view, one trip to Redis', 'font-weight="bold"'),
    ratio
      ? text(MARGIN, 190, 92, `× ${figure(ratio.median)}`, 'font-weight="bold" fill="#0068b0"')
      : '',
    ...sentences.map((line, index) => text(MARGIN, top + 34 * index, 25, line)),
    ...lanes.map(({ strategy, requestsPerSecond: { median }, p50Ms, p99Ms }, index) => {
      const y = top + 34 * sentences.length + row * index
      const colour = COLOURS[strategy] ?? '#7a4b2a'
      const width = ((RIGHT - MARGIN) * median) / highest
      const latency = `p50 ${milliseconds(p50Ms)}, p99 ${milliseconds(p99Ms)}`
      return [
        text(MARGIN, y + 24, 24, strategy, `font-weight="bold" fill="${colour}"`),
        text(330, y + 24, 24, `${figure(median)} page views/s`),
        text(RIGHT, y + 24, 22, latency, 'text-anchor="end" fill="#57606a"'),
        `<rect class="bar" x="${MARGIN}" y="${y + 36}" width="${width.toFixed(1)}" height="14" fill="${colour}"/>`,
      ].join('')
    }),
    text(MARGIN, HEIGHT - 60, 20, conditionsOf(result), 'fill="#57606a"'),
    text(MARGIN, HEIGHT - 28, 18, command ?? '', 'fill="#57606a"'),
    '</svg>',
  ].join('\n')
}
