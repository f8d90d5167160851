import type { DocumentFigure } from './experiment.ts'

// What the documents print, for the experiments that repeat it. Their machines are not ours, and most
// of their servers are Redis 4.

const INFO_SOURCE = '张鹏义, Tencent Cloud: cases of high CPU and memory; Redis 4.0.10'

/** CPU of the server while one client sends INFO without pause. */
export const infoFigures: readonly DocumentFigure[] = [
  { what: 'INFO, no idle connections', value: 20, unit: '% of a core', source: INFO_SOURCE },
  { what: 'INFO, 9,999 idle connections', value: 80, unit: '% of a core', source: INFO_SOURCE },
]
