import { endingText } from '../../experiment/rounds.ts'
import type { HttpResult } from '../../http/result.ts'
import type { VariantSummary } from '../../http/summary.ts'
import { counted, figure } from '../../table.ts'
import type { Part } from '../model.ts'
import {
  cpuChart,
  isDoubtful,
  latencyTable,
  notesOf,
  ratioTable,
  throughputChart,
  throughputTable,
} from './http-tables.ts'
import { apisText, clientsText, loadFacts, provenanceOf, redisText } from './provenance.ts'
import { sampleTable } from './samples.ts'
import { variantsTable } from './variants.ts'

/** `npm run load -- http`. */
export function httpPart(result: HttpResult): Part {
  const { summaries, samples, options, redis, poolSize, workers, clients, generator } = result
  const rounds = Math.max(...samples.map(({ round }) => round))
  const ratios = ratioTable(
    summaries,
    'Requests per second as a multiple, round by round: median (range), and the 95 % interval of the geometric mean',
  )
  const notes = notesOf(summaries)
  return {
    name: 'http',
    title: 'Page views over HTTP, at full speed',
    headline: headlineOf(result, rounds),
    sections: [
      {
        title: 'Throughput',
        paragraphs: [
          ...endingText(result),
          `Each of ${counted(options.connections, 'connection')} sends its next request as soon as the last one was answered. Figures are medians over ${counted(rounds, 'round')}, with the range.${shared(summaries)}`,
        ],
        charts: [throughputChart(summaries)],
        tables: [
          throughputTable(summaries, 'Per request that reached the API; medians of the rounds'),
          ...(ratios ? [ratios] : []),
        ],
        notes,
      },
      {
        title: 'CPU time per request',
        paragraphs: [
          'CPU time per request and the ratios carry over to other machines better than the rates: generator, API and Redis share the cores of this one.',
        ],
        charts: [cpuChart(summaries)],
      },
      { title: 'Latency at full speed', tables: [latencyTable(summaries)] },
      {
        title: 'What the variants are',
        tables: [variantsTable(summaries.map(({ variant }) => variant))],
      },
    ],
    provenance: provenanceOf(result, [
      ['Redis', redisText(redis)],
      ['APIs', apisText(workers, poolSize)],
      ['Clients', clientsText(clients)],
      ...loadFacts(generator, options),
    ]),
    samples: [sampleTable('Every run over HTTP', samples)],
    document: result,
  }
}

/** How there can be less than one round trip for a request. */
function shared(summaries: readonly VariantSummary[]): string {
  const some = summaries.some(({ roundTrips: { median } }) => median > 0 && median < 1)
  return some ? ' Requests whose commands are sent together share a round trip.' : ''
}

/** The two that the headline compares: ours with what an application would write, if they ran. */
function heroes(summaries: readonly VariantSummary[]) {
  const find = (name: string) => summaries.find(({ variant }) => variant === name)
  const base = find('naive') ?? find('naive-lean') ?? find('sequential') ?? find('pipeline')
  const others = summaries.filter((row) => row !== base && row.variant !== 'noop')
  const best = others.toSorted((a, b) => b.requestsPerSecond.median - a.requestsPerSecond.median)[0]
  const hero = find('batch') ?? find('pipeline') ?? best
  return base && hero && base !== hero ? { base, hero } : undefined
}

function headlineOf({ summaries, options }: HttpResult, rounds: number): string[] {
  const pair = heroes(summaries)
  if (!pair) return []
  const { base, hero } = pair
  const ratio = hero.ratios[base.variant]
  if (!ratio || isDoubtful(base) || isDoubtful(hero)) {
    return [
      `No ratio is claimed between ${hero.variant} and ${base.variant}.`,
      'The generator was at its limit, or the machine was busy with something else: the rows that this is about are marked.',
    ]
  }
  const what = options.reads > 0 ? 'requests' : 'page views'
  const range =
    rounds === 1 ? 'one round' : `${figure(ratio.min)} to ${figure(ratio.max)}, ${rounds} rounds`
  return [
    `${hero.variant} answers ${figure(ratio.median)} times as many ${what} a second as ${base.variant} (${range}).`,
    `For each request ${deeds(base)}; ${deeds(hero)}.`,
  ]
}

/** What makes the difference: `naive opens 1 connection to Redis, waits for 5 round trips and …`. */
function deeds({ variant, connections, roundTrips, commands }: VariantSummary): string {
  const opens = connections.median < 0.005 ? 'no connection' : some(connections, 'connection')
  return `${variant} opens ${opens} to Redis, waits for ${some(roundTrips, 'round trip')} and sends ${some(commands, 'command')}`
}

function some({ median }: { median: number }, noun: string): string {
  const number = String(Number(median.toFixed(2)))
  return `${number} ${noun}${number === '1' ? '' : 's'}`
}
