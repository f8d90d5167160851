import type { StrategyName } from '@onetrip/session-store'
import type { NetworkSettings } from './network.ts'

/** How a view reaches Redis; `closes-itself` is a strategy of this experiment. */
export type Way = Extract<StrategyName, 'naive' | 'pipeline'> | 'closes-itself'

/** One combination of a client and the settings that decide whether it runs out of ports. */
export interface Case {
  name: string
  /** In a few words, for the table. */
  description: string
  way: Way
  /** Times as many ports as the others. */
  portsFactor: number
  reuse: NetworkSettings['reuse']
  /** So many of the ports may wait, as a share. Default: all. */
  mayWait?: number
  /** Redis is reached by an address that is not one of loopback. */
  otherAddress: boolean
}

const closing: Omit<Case, 'name' | 'description'> = {
  way: 'closes-itself',
  portsFactor: 1,
  reuse: 0,
  otherAddress: false,
}

export const cases: readonly Case[] = [
  { ...closing, name: 'no-reuse', description: 'client closes' },
  {
    // Early, so that no connection of the other cases leaves TIME_WAIT meanwhile and makes room.
    ...closing,
    name: 'few-waiting',
    description: 'client closes, a tenth may wait',
    mayWait: 0.1,
  },
  { ...closing, name: 'more-ports', description: 'client closes, more ports', portsFactor: 2 },
  { ...closing, name: 'loopback', description: 'client closes, kernel default', reuse: 2 },
  {
    ...closing,
    name: 'not-loopback',
    description: 'client closes, kernel default, other address',
    reuse: 2,
    otherAddress: true,
  },
  {
    ...closing,
    name: 'reuse',
    description: 'client closes, reuse on, other address',
    reuse: 1,
    otherAddress: true,
  },
  { ...closing, name: 'quit', description: 'naive: QUIT, Redis closes', way: 'naive' },
  { ...closing, name: 'pool', description: 'pipeline: one connection', way: 'pipeline' },
]
