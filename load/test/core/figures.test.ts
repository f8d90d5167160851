import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { NODE_RATES } from '@onetrip/doctor'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'
import { REFERENCE } from '../../src/experiments/redis/commands/node-clients.ts'
import { published } from '../../src/measure/machine.ts'
import { withFigures } from '../../src/reporting/document.ts'
import { readResult } from '../../src/reporting/files.ts'
import { Rows } from '../../src/rounds/rows.ts'

/** The numbers of a column of a published table, by how their row begins, such as `loopback naive`. */
async function column(result: string, table: number, name: string) {
  const text = await withFigures(`<!-- ${result}.json, table ${table} -->\n`)
  const [head = [], , ...rows] = text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.replace(/( [\\*†‡!?]+)+ *$/, '').trim()))
  const index = head.findIndex((title) => title.startsWith(name))
  return (begin: string) => {
    const row = rows.find((cells) =>
      ` ${cells.join(' ')}`.replaceAll(/ +/g, ' ').startsWith(` ${begin} `),
    )
    return Number.parseFloat((row?.[index] ?? '').replaceAll(',', ''))
  }
}

const rate = await column('http', 1, 'requests/s')
const apiCpu = await column('http', 1, 'API CPU')
const redisCpu = await column('http', 1, 'Redis CPU')

// Tables and lists in documents are filled in from the results. These sentences are written by hand.
test.each<[sentence: string, figure: number, from: number, to: number]>([
  [
    '*Keep one connection open* (about four times the rate)',
    rate('sequential') / rate('naive'),
    3.5,
    8,
  ],
  [
    "*send a view's commands together* (half of Redis's work)",
    redisCpu('pipeline') / redisCpu('sequential'),
    0.35,
    0.65,
  ],
  [
    '*share socket writes and encode cheaply* (half of your own)',
    apiCpu('batch') / apiCpu('pipeline'),
    0.35,
    0.65,
  ],
])('README.md: %s (%d)', async (sentence, figure, from, to) => {
  const text = await readFile(join(repository, 'README.md'), 'utf8')
  expect(text.replaceAll(/\s+/g, ' ').includes(sentence), 'has the sentence').toBe(true)
  expect(figure).toBeGreaterThan(from)
  expect(figure).toBeLessThan(to)
})

test("the doctor's rates of Node clients are about those of the results", async () => {
  const { experiment, result } = await readResult(join(published, 'node-clients.json'))
  const rows = Rows.of(experiment, result.samples)
  const [kept, opened] = rows
    .filter(({ case: { client } }) => client !== REFERENCE.client)
    .by('connection')
    .map(({ rows: { all } }) => {
      const shares = all.flatMap((row) => row.ratio('perSecond', row.baseline(rows))?.mean ?? [])
      return [100 * Math.min(...shares), 100 * Math.max(...shares)]
    })
  for (const [name, found] of Object.entries({ kept, opened })) {
    const stated = NODE_RATES[name as keyof typeof NODE_RATES]
    expect(stated[0] / (found?.[0] ?? 0), name).toBeCloseTo(1, 0)
    expect(stated[1] / (found?.[1] ?? 0), name).toBeCloseTo(1, 0)
  }
})
