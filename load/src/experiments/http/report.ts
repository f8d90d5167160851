import type { Rows } from '../../experiment/rows.ts'
import type { Section, Table } from '../../experiment/section.ts'
import { type Case, product } from '../../experiment/shape.ts'
import { type Column, errors, range, ratio, tableOf } from '../../reporting/columns.ts'
import { descriptions } from '../../variants.ts'

const RATE = 'requestsPerSecond'

/** Under which all variants were measured. */
interface Conditions {
  /** `64 callers at 1 ms`. */
  readonly name: string
  readonly values: Case
}

/** None for a result without these factors. The first conditions are the main ones. */
function conditionsOf(rows: Rows): Conditions[] {
  const callers = rows.values('connections')
  return product({ link: rows.values('link'), connections: callers }).map((values) => ({
    name: nameOf(values),
    values,
  }))
}

function nameOf({ link, connections }: Case): string {
  const callers = connections === 1 ? 'one caller' : `${connections} callers`
  const distance = String(link).replace(/^([\d.]+)(\w+)@1Gb\/s$/, '$1 $2')
  return distance === 'loopback' ? callers : `${callers} at ${distance}`
}

/** The most connections, over the first link. */
function mainOf(conditions: readonly Conditions[]): Conditions | undefined {
  const near = conditions.filter(({ values }) => values.link === conditions[0]?.values.link)
  return near.toSorted((a, b) => Number(b.values.connections) - Number(a.values.connections))[0]
}

export function sectionsOf(rows: Rows): Section[] {
  const conditions = conditionsOf(rows)
  const main = mainOf(conditions)
  return [
    {
      title: 'Throughput',
      tables:
        main && conditions.length > 1
          ? [
              byConditions(rows, conditions, main),
              ...conditions.map(({ name, values }) =>
                perRequest(rows.where(values), `All variants, ${name}`),
              ),
            ]
          : perVariant(rows),
    },
    {
      title: 'The variants',
      tables: [
        {
          caption: 'How the commands of a request reach Redis',
          head: ['variant', 'how'],
          rows: Object.entries(descriptions).filter(([variant]) => rows.find({ variant })),
          texts: [0, 1],
        },
      ],
      isDetail: true,
    },
  ]
}

/** The ratios under all conditions, and the CPU time under the main ones. */
function byConditions(rows: Rows, conditions: readonly Conditions[], main: Conditions): Table {
  const base = nameOfBaseline(rows)
  const columns = conditions.map(({ name, values }): Column => {
    const column = ratio(RATE, `× ${base} with ${name}`)
    return {
      ...column,
      cell(row) {
        const there = rows.find({ ...row.case, ...values })
        if (!there) return '-'
        const marks = there === rows.find(row.case) ? [] : there.doubts.map(({ mark }) => mark)
        return [column.cell(there, rows), ...marks].join(' ')
      },
    }
  })
  return tableOf(rows.where(main.values), {
    caption: `Requests/s compared with ${base}; CPU time with ${main.name}`,
    columns: [...columns, 'apiCpuMicros', 'redisCpuMicros'],
  })
}

/** The variants of the first table. */
const mainVariants = 'naive naive-lean connect-redis node-redis pipeline batch noop bare'.split(' ')

function perVariant(rows: Rows): Table[] {
  const shown = rows.filter((row) => mainVariants.includes(row.subject))
  const isPart = shown.all.length > 0 && shown.all.length < rows.all.length
  return [
    ...(isPart ? [perRequest(shown, 'The main variants')] : []),
    perRequest(rows, 'All variants'),
  ]
}

const perRequest = (rows: Rows, which: string): Table =>
  tableOf(rows, {
    caption: `${which}, per request that reached the API`,
    columns: [
      range(RATE, rows),
      ratio(RATE, `× ${nameOfBaseline(rows)}`),
      'p50',
      'p99',
      'connections',
      'commands',
      'roundTrips',
      'apiCpuMicros',
      'redisCpuMicros',
      errors,
    ],
  })

const nameOfBaseline = (rows: Rows) => rows.all[0]?.baseline(rows)?.subject
