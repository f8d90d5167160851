import { styleText } from 'node:util'
import { type Summary, summarize } from '../../statistics.ts'
import { figure, type TextTable, withRange } from '../../table.ts'
import { samplesOf, type Taken } from '../rounds.ts'
import type { Reading } from './slow-reader-client.ts'
import type { MemoryWatch } from './slow-reader-memory.ts'
import type { Mode, ModeId } from './slow-reader-modes.ts'

export type Sample = MemoryWatch & { result: Reading }

const MEGABYTE = 2 ** 20
const STEP_MS = 100
const levels = '▁▂▃▄▅▆▇█'

/**
 * The memory that was added, over time, as a line of blocks: one for each 0.1 s, of the highest sample
 * in it, or of the one before on a machine that was too busy to look.
 *
 * @param highestBytes what the highest block stands for.
 */
export function sparkline(
  { samples, baseBytes }: Pick<MemoryWatch, 'samples' | 'baseBytes'>,
  highestBytes: number,
): string {
  const steps: number[] = []
  for (const { ms, bytes } of samples) {
    const step = Math.floor(ms / STEP_MS)
    steps[step] = Math.max(steps[step] ?? 0, bytes - baseBytes)
  }
  let bytes = 0
  return Array.from(steps, (step) => {
    bytes = step ?? bytes
    const level = Math.ceil((levels.length * bytes) / highestBytes) - 1
    return levels[Math.min(Math.max(level, 0), levels.length - 1)]
  }).join('')
}

/** All runs of one mode. */
interface Row {
  mode: Mode
  addedMegabytes: Summary
  readMegabytes: Summary
  chart: string
  /** Seconds until Redis closed the client; null when it did in no round. */
  closedAfter: number | null
  /** Share of the other client's writes, 0 to 1. */
  refusedWrites: number
  /** Of the store's calls, in all rounds. */
  refusedCalls: number
}

type Runs = readonly Taken<Mode, Sample>[]

const added = ({ peakBytes, baseBytes }: MemoryWatch) => (peakBytes - baseBytes) / MEGABYTE
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

function rowsOf(modes: readonly Mode[], taken: Runs): Row[] {
  const highest = Math.max(...taken.map(({ sample }) => added(sample))) * MEGABYTE
  return modes.map((mode) => {
    const runs = samplesOf(taken, mode)
    const closed = runs.flatMap(({ closedAfterMs }) => closedAfterMs ?? [])
    const refused = sum(runs.map(({ otherWrites }) => otherWrites.refused))
    const done = sum(runs.map(({ otherWrites }) => otherWrites.done))
    const [first] = runs
    return {
      mode,
      addedMegabytes: summarize(runs.map(added)),
      readMegabytes: summarize(runs.map(({ result }) => result.bytesRead / MEGABYTE)),
      chart: first ? sparkline(first, highest) : '',
      closedAfter: closed.length > 0 ? summarize(closed).median / 1_000 : null,
      refusedWrites: refused / (refused + done),
      refusedCalls: sum(runs.map(({ result }) => result.refused)),
    }
  })
}

export function table(modes: readonly Mode[], taken: Runs): TextTable {
  const rows = rowsOf(modes, taken)
  return {
    title: 'Memory of Redis beyond what it had before',
    head: [
      'client and setting',
      'memory added, MB\npeak (range)',
      'replies\nread, MB',
      'closed by\nRedis after',
      "others'\nwrites\nrefused",
      'memory over time\n(round 1, 0.1 s each)',
    ],
    rows: rows.map((row) => [
      row.mode.name,
      withRange(row.addedMegabytes),
      figure(row.readMegabytes.median),
      row.closedAfter === null ? '-' : `${row.closedAfter.toFixed(2)} s`,
      row.refusedWrites === 0 ? '0' : `${figure(row.refusedWrites * 100)} %`,
      row.chart,
    ]),
    texts: [5],
  }
}

export function conclusions(modes: readonly Mode[], taken: Runs): string[] {
  const rows = rowsOf(modes, taken)
  const find = (id: ModeId) => rows.find(({ mode }) => mode.id === id)
  const megabytes = (id: ModeId) => `${figure(find(id)?.addedMegabytes.median ?? Number.NaN)} MB`
  const seconds = (id: ModeId) => {
    const after = find(id)?.closedAfter ?? null
    return after === null
      ? 'did not close the client'
      : `closed the client after ${after.toFixed(2)} s`
  }
  const writes = find('maxmemory')?.refusedWrites ?? 0
  return [
    styleText(
      'bold',
      `Replies that nobody reads took ${megabytes('unlimited')} of the server's memory. ` +
        `client-output-buffer-limit ${seconds('output-limit')}, at ${megabytes('output-limit')}; ` +
        `maxmemory-clients ${seconds('client-memory')}, at ${megabytes('client-memory')}.`,
    ),
    `maxmemory alone bounds nothing of it (${megabytes('maxmemory')}): it makes others pay, of whose ` +
      `writes ${figure(writes * 100)} % were refused.`,
    `A reader that takes every reply at once still costs ${megabytes('one-pipeline')} when it asks for ` +
      `everything in one pipeline, and ${megabytes('pipelines')} in pipelines of 100 commands.`,
    styleText(
      'bold',
      `Our store, which reads all that it asks for and has at most 1,000 calls in flight, took ` +
        `${megabytes('store')}, though its process stopped in between; called without restraint it took ` +
        `${megabytes('store-at-once')} and refused ` +
        `${figure(find('store-at-once')?.refusedCalls ?? 0)} calls at once.`,
    ),
  ]
}
