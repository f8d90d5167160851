import { limits } from '../../variants.ts'

// Colours are the page's CSS variables, so that one drawing suits both themes. Told apart are things by
// more than colour: bars by their labels and by hatching, lines by labels, dashes and symbols.

export const text = 'var(--text)'
export const muted = 'var(--muted)'
export const grid = 'var(--grid)'
const background = 'var(--background)'

/** Ours each have one of their own; the others are told apart by all but colour. */
const colours: readonly (readonly [name: string, colour: number])[] = [
  ...([
    ['naive', 0],
    ['naive-lean', 1],
    ['sequential', 2],
    ['pipeline', 3],
  ] as const),
  ...([
    ['transaction', 4],
    ['batch', 5],
    ['script', 8],
    ['noop', 6],
  ] as const),
]

const OTHERS = 7

/** The same variant has the same colour in all charts. */
export function colourOf(name: string): string {
  const known = colours.find(([variant]) => variant === name)
  return `var(--colour-${known?.[1] ?? OTHERS})`
}

/** Of a bar. A limit is an outline: it is no contender. */
export const barStyle = (name: string) =>
  limits.includes(name)
    ? { color: 'none', borderColor: muted, borderWidth: 1.5, borderType: 'dashed' }
    : { color: colourOf(name) }

export const symbols = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'arrow'] as const
export const dashes = ['solid', [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]] as const

/** Slanting lines over the colour. */
export const hatching = {
  symbol: 'rect',
  dashArrayX: [1, 0],
  dashArrayY: [3, 4],
  rotation: -Math.PI / 4,
  color: background,
} as const

/** What a chart is drawn for, in pixels of the page. */
export interface Canvas {
  readonly width: number
  /** Whether it is for a phone. */
  readonly narrow: boolean
}
