import { type Transport, transports } from '@onetrip/stack/address.ts'
import { listOf, wholeNumber } from '@onetrip/stack/parsers.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { addBuilds, type BuildsOptions, numbersOption } from '../../drivers/redis/options.ts'
import { type Shape, shapes } from './shapes.ts'

export interface ShortConnectionsOptions extends BuildsOptions {
  idle: (number | 'most')[]
  transports: Transport[]
  ioThreads: number[]
  connections: number
  long: number
  maxclients?: number
  shape?: Shape[]
  requests?: number
  clients?: number
}

const MAX_IDLE = 1_000_000

const shapeNames = Object.keys(shapes) as Shape[]

export function addOptions(command: Command): void {
  addBuilds(command, ['baseline', 'stock', 'patched'])
  command
    .addOption(
      new Option('--idle <list>', 'connections that only stay; "most": as many as there can be')
        .argParser(idleNumbers)
        .default([0, 1_000, 10_000], '0,1000,10000'),
    )
    .addOption(
      new Option('--transports <list>', `out of ${transports.join(', ')}`)
        .argParser(listOf(transports))
        .default([...transports], transports.join(',')),
    )
    .addOption(
      numbersOption('--io-threads <list>', "Redis's threads, its main one included", {
        ...{ min: 1, max: 128, defaults: [1] },
      }),
    )
    .option('--connections <n>', 'short ones at the same time', wholeNumber(1, 100_000), 50)
    .option('--long <n>', 'long ones, alone and beside short ones', wholeNumber(0, 10_000), 20)
    .option(
      '--maxclients <n>',
      'of Redis (default: with room for all connections twice)',
      wholeNumber(1, MAX_IDLE),
    )
    .addOption(
      new Option(
        '--shape <list>',
        `the documents' runs instead, out of ${shapeNames.join(', ')}`,
      ).argParser(listOf(shapeNames)),
    )
    .option('--requests <n>', 'with --shape: fewer than the documents', wholeNumber(1, 1e9))
    .option('--clients <n>', 'likewise', wholeNumber(1, 100_000))
}

function idleNumbers(text: string): (number | 'most')[] {
  const list = text.split(',').map((word) => {
    if (word.trim() === 'most') return 'most'
    if (/^\d{1,7}$/.test(word.trim()) && Number(word) <= MAX_IDLE) return Number(word)
    throw new InvalidArgumentError(`It must be whole numbers up to ${MAX_IDLE}, or "most".`)
  })
  if (new Set(list).size === list.length) return list
  throw new InvalidArgumentError('Each may stand in the list only once.')
}
