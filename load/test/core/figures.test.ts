import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { NODE_RATES } from '@onetrip/doctor'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'
import { Rows } from '../../src/experiment/rows.ts'
import { REFERENCE } from '../../src/experiments/redis/commands/node-clients.ts'
import { published } from '../../src/measure/machine.ts'
import { withFigures } from '../../src/reporting/document.ts'
import { readResult } from '../../src/reporting/files.ts'

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

const apiCpu = await column('http', 1, 'API CPU')
const redisCpu = await column('http', 1, 'Redis CPU')
const oneRate = await column('pattern', 1, '× sequential')
const oneWait = await column('pattern', 1, 'p50')
const manyRate = await column('pattern-64', 1, 'calls/s')
const manyRedis = await column('pattern-64', 1, 'Redis CPU')
const viewCpu = await column('http-views', 1, 'API CPU')
const clientCpu = await column('clients', 1, 'client CPU')
const info = await column('info', 1, 'main thread CPU µs')

// Tables and lists in documents are filled in from the results. These sentences are written by hand.
test.each<[document: string, sentence: string, figure: number, from: number, to: number]>([
  ['README.md', 'the open connection gives most', apiCpu('naive') / apiCpu('sequential'), 4, 9],
  [
    'README.md',
    'One trip then halves the CPU time of Redis',
    redisCpu('pipeline') / redisCpu('sequential'),
    0.4,
    0.6,
  ],
  [
    'README.md',
    "the cheaper encoding saves up to half of the API's",
    apiCpu('pipeline-framed') / apiCpu('pipeline'),
    0.5,
    0.75,
  ],
  [
    'README.md',
    "shared writes about 40 % of Redis's",
    redisCpu('batch') / redisCpu('pipeline-framed'),
    0.55,
    0.65,
  ],
  [
    'docs/how-it-works.md',
    'the rate more than triples (without HTTP)',
    oneRate('loopback pipeline'),
    3,
    4,
  ],
  [
    'docs/how-it-works.md',
    'each view takes four milliseconds less',
    oneWait('1ms@1Gb/s sequential') - oneWait('1ms@1Gb/s pipeline'),
    3.5,
    4.5,
  ],
  [
    'docs/how-it-works.md',
    'Redis takes less than half the CPU time',
    manyRedis('loopback pipeline') / manyRedis('loopback sequential'),
    0.3,
    0.5,
  ],
  [
    'docs/how-it-works.md',
    'about half as much CPU time per request as with `pipeline`',
    redisCpu('batch') / redisCpu('pipeline'),
    0.4,
    0.65,
  ],
  [
    'examples/pattern/README.md',
    'more than three times as fast as `sequential` on one machine',
    oneRate('loopback pipeline'),
    3,
    4,
  ],
  [
    'examples/pattern/README.md',
    'four to five times with network latency',
    oneRate('0.3ms@1Gb/s pipeline'),
    4,
    5,
  ],
  [
    'examples/pattern/README.md',
    'four to five times with network latency',
    oneRate('1ms@1Gb/s pipeline'),
    4,
    5,
  ],
  [
    'examples/pattern/README.md',
    '`sequential` is more than eight times as fast as `naive`',
    manyRate('loopback sequential') / manyRate('loopback naive'),
    8,
    9,
  ],
  [
    'examples/pattern/README.md',
    '`batch` takes less than half of the CPU time that Redis needs with `pipeline`',
    manyRedis('loopback batch') / manyRedis('loopback pipeline'),
    0.3,
    0.5,
  ],
  [
    'examples/pattern/README.md',
    'at 1 ms it takes two thirds',
    manyRedis('1ms@1Gb/s batch') / manyRedis('1ms@1Gb/s pipeline'),
    0.6,
    0.75,
  ],
  [
    'examples/pattern/README.md',
    'the rates are equal within the noise',
    manyRate('1ms@1Gb/s batch') / manyRate('1ms@1Gb/s pipeline'),
    0.9,
    1.1,
  ],
  [
    'docs/measurements/other-clients.md',
    '`batch` needs a third more CPU time of the API than `noop`',
    viewCpu('batch') / viewCpu('noop'),
    1.2,
    1.45,
  ],
  [
    'docs/measurements/other-clients.md',
    'Half of its CPU time is HTTP: `bare`',
    viewCpu('bare') / viewCpu('batch'),
    0.4,
    0.6,
  ],
  [
    'docs/measurements/other-clients.md',
    '(`pipeline-framed` against `ioredis`, 10 µs against 29)',
    clientCpu('64 ioredis') - clientCpu('64 pipeline-framed'),
    18,
    20,
  ],
  [
    'docs/measurements/other-clients.md',
    "they need two thirds of the client's CPU time of `batch`",
    clientCpu('1,024 go-redis-auto') / clientCpu('1,024 batch'),
    0.6,
    0.75,
  ],
  [
    'docs/measurements/other-clients.md',
    'A call of `batch` takes twice the CPU time that it takes with 64 callers',
    clientCpu('1,024 batch') / clientCpu('64 batch'),
    1.7,
    2.3,
  ],
  [
    'docs/measurements/redis-experiments.md',
    'takes about 1 % of a core',
    info('9,999 patched CLIENT LIST') / 1e4,
    0.8,
    1.4,
  ],
])('%s: %s (%d)', async (document, sentence, figure, from, to) => {
  const text = await readFile(join(repository, document), 'utf8')
  expect(text.replaceAll(/\s+/g, ' ').includes(sentence), 'has the sentence').toBe(true)
  expect(figure).toBeGreaterThan(from)
  expect(figure).toBeLessThan(to)
})

test('docs/measurements/io-threads.md: the number of gains and losses', async () => {
  const { experiment, result } = await readResult(join(published, 'io-threads.json'))
  const rows = Rows.of(experiment, result.samples)
  const ratios = rows.all.flatMap((row) => {
    const base = row.baseline(rows)
    return row.isDisturbed || base?.isDisturbed ? [] : (row.ratio('perSecond', base) ?? [])
  })
  const gains = ratios.filter(({ min }) => min >= 1.1).length
  const losses = ratios.filter(({ max }) => max <= 0.9).length
  const document = await readFile(join(repository, 'docs/measurements/io-threads.md'), 'utf8')
  expect(document.replaceAll(/\s+/g, ' ')).toContain(
    `In the 160 cases of 40 loads with four settings, the rate gains in ${gains} cases, and loses in ${losses}.`,
  )
})

test("the doctor's rates of Node clients are those of the results", async () => {
  const { experiment, result } = await readResult(join(published, 'node-clients.json'))
  const rows = Rows.of(experiment, result.samples)
  const [kept, opened] = rows
    .filter(({ case: { client } }) => client !== REFERENCE.client)
    .by('connection')
    .map(({ rows: { all } }) => {
      const shares = all.flatMap((row) => row.ratio('perSecond', row.baseline(rows))?.mean ?? [])
      return [Math.floor(100 * Math.min(...shares)), Math.ceil(100 * Math.max(...shares))]
    })
  expect(NODE_RATES).toEqual({ kept, opened })
})
