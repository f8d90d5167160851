import { descriptions } from '../../contenders.ts'
import type { ReportTable } from '../model.ts'

/** What the variants of a result are; those that are known no longer are left out. */
export function variantsTable(names: readonly string[]): ReportTable {
  const known = Object.entries(descriptions).filter(([name]) => names.includes(name))
  return {
    caption: 'The variants: how the commands of a request reach Redis',
    head: ['variant', 'how'],
    rows: known,
    texts: [1],
  }
}
