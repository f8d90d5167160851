import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import { ELSEWHERE, type Sample } from './result.ts'
import { type Case, type Doubt, metricOf, type Shape } from './shape.ts'
import { type Ratio, type Summary, summarize, summarizeRatios } from './statistics.ts'

const disturbed: Doubt = {
  mark: '†',
  text: 'In at least one round, other programs or other guests of the host used 10 % of the CPU time or more. CPU time and counts are more reliable than rates and latencies.',
  keepsRatios: true,
}

/** All runs of one case. */
export class Row {
  readonly case: Case
  /** In the order of the rounds. */
  readonly samples: readonly Sample[]
  readonly shape: Shape

  constructor(shape: Shape, samples: readonly Sample[]) {
    this.case = samples[0]?.case ?? {}
    this.samples = samples.toSorted((a, b) => a.round - b.round)
    this.shape = shape
  }

  /** The displayed value of a factor. */
  text(factor: string): string {
    const value = this.case[factor]
    if (value === undefined) return ''
    const shown = this.shape.factors.find(({ name }) => name === factor)?.text
    return shown ? shown(value) : value.toLocaleString('en-US')
  }

  /** The displayed value of the subject: `batch`. */
  get subject(): string {
    return this.text(this.shape.subject)
  }

  /** The values of a metric, one for each round that has it. */
  values(metric: string): number[] {
    return this.samples.flatMap(({ values }) => values[metric] ?? [])
  }

  /** Median and range over the rounds; null if no round has the metric. */
  summary(metric: string): Summary | null {
    const values = this.values(metric)
    return values.length > 0 ? summarize(values) : null
  }

  median(metric: string): number | null {
    return this.summary(metric)?.median ?? null
  }

  /** The metric's value over all rounds: its `overall`, else the median. */
  value(metric: string): number | null {
    const { overall } = metricOf(this.shape, metric)
    return overall ? overall(this.samples) : this.median(metric)
  }

  total(metric: string): number {
    return this.values(metric).reduce((sum, value) => sum + value, 0)
  }

  /** The sum of failures by kind. */
  get errors(): Readonly<Record<string, number>> {
    const total: Record<string, number> = {}
    for (const [kind, count] of this.samples.flatMap(({ errors = {} }) => Object.entries(errors))) {
      total[kind] = (total[kind] ?? 0) + count
    }
    return total
  }

  get doubts(): readonly Doubt[] {
    const names = new Set(this.samples.flatMap(({ doubts = [] }) => doubts))
    const own = Object.entries(this.shape.doubts ?? {}).flatMap(([name, doubt]) =>
      names.has(name) ? [doubt] : [],
    )
    return this.isDisturbed ? [...own, disturbed] : own
  }

  /** Whether other programs or guests used 10 % of the CPU time or more in any round. */
  get isDisturbed(): boolean {
    return this.values(ELSEWHERE).some((share) => share >= DISTURBED)
  }

  /** Whether a doubt rules out ratios of rates and latencies. */
  get hasDoubtfulRate(): boolean {
    return this.doubts.some(({ keepsRatios }) => !keepsRatios)
  }

  /** The row that ratios of this row are relative to. */
  baseline(rows: Rows): Row | undefined {
    const cases = rows.all.map((row) => row.case)
    const other = this.shape.baseline?.(this.case, cases)
    return other ? rows.find({ ...this.case, ...other }) : undefined
  }

  /** The ratio of a metric to that of `base`, for each round that both rows have. */
  ratios(metric: string, base: Row): number[] {
    return this.samples.flatMap(({ round, values }) => {
      const other = base.samples.find((sample) => sample.round === round)?.values[metric]
      const own = values[metric] ?? null
      return other && own !== null ? [own / other] : []
    })
  }

  /**
   * The geometric mean of `ratios`. Null if the rows have no round in common, if a value is 0, or if the metric is a pace
   * and the rate of one of the rows is doubtful.
   */
  ratio(metric: string, base: Row | undefined): Ratio | null {
    if (!base || base === this) return null
    const isPace = metricOf(this.shape, metric).kind === 'pace'
    if (isPace && (this.hasDoubtfulRate || base.hasDoubtfulRate)) return null
    const ratios = this.ratios(metric, base)
    return ratios.length > 0 && ratios.every((ratio) => ratio > 0) ? summarizeRatios(ratios) : null
  }
}

/** The rows of a result, in the order of its cases. */
export class Rows {
  readonly shape: Shape
  readonly all: readonly Row[]

  constructor(shape: Shape, rows: readonly Row[]) {
    this.shape = shape
    this.all = rows
  }

  static of(shape: Shape, samples: readonly Sample[]): Rows {
    const key = ({ case: one }: Sample) =>
      JSON.stringify(shape.factors.map(({ name }) => one[name] ?? null))
    const groups = [...Map.groupBy(samples, key).values()]
    return new Rows(
      shape,
      groups.map((group) => new Row(shape, group)),
    )
  }

  /** The rows with these values. */
  where(part: Partial<Case>): Rows {
    return this.filter((row) => matches(row.case, part))
  }

  filter(test: (row: Row) => boolean): Rows {
    return new Rows(this.shape, this.all.filter(test))
  }

  find(part: Partial<Case>): Row | undefined {
    return this.all.find((row) => matches(row.case, part))
  }

  /** The different values of a factor, in the order of the rows. */
  values(factor: string): (string | number)[] {
    return [...new Set(this.all.flatMap((row) => row.case[factor] ?? []))]
  }

  /** Groups the rows by the value of a factor. */
  by(factor: string): { value: string | number; rows: Rows }[] {
    return this.values(factor).map((value) => ({ value, rows: this.where({ [factor]: value }) }))
  }

  /** The subject, and the factors with more than one value. They name a row. */
  get varying(): readonly string[] {
    const { factors, subject } = this.shape
    return factors
      .map(({ name }) => name)
      .filter((name) => name === subject || new Set(this.all.map((row) => row.text(name))).size > 1)
  }

  /** The name of a row, by its varying factors: `HTTP connections 64, batch`. */
  nameOf(row: Row): string {
    return this.varying
      .filter((name) => row.text(name) !== '')
      .map((name) => {
        const { label = name } = this.shape.factors.find((one) => one.name === name) ?? {}
        return typeof row.case[name] === 'number' ? `${label} ${row.text(name)}` : row.text(name)
      })
      .join(', ')
  }
}

export const matches = (one: Case, part: Partial<Case>) =>
  Object.entries(part).every(([name, value]) => one[name] === value)
