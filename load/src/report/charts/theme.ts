import { variants } from '../../stack/api.ts'

// Colours are the page's CSS variables, so that one drawing suits both themes. Told apart are things by
// more than colour: bars by their labels and by hatching, lines by labels, dashes and symbols.

export const text = 'var(--text)'
export const muted = 'var(--muted)'
export const grid = 'var(--grid)'
export const background = 'var(--background)'

const COLOURS = 8

/** The same variant has the same colour in all charts; `index` is for names that are no variants. */
export function colourOf(name: string, index: number): string {
  const known = (variants as readonly string[]).indexOf(name)
  return `var(--colour-${(known === -1 ? index : known) % COLOURS})`
}

export const symbols = [
  'circle',
  'rect',
  'triangle',
  'diamond',
  'roundRect',
  'emptyCircle',
] as const
export const dashes = ['solid', [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]] as const

/** Slanting lines over the colour. */
export const hatching = {
  symbol: 'rect',
  dashArrayX: [1, 0],
  dashArrayY: [3, 4],
  rotation: -Math.PI / 4,
  color: background,
} as const
