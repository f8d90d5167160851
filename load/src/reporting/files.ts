import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import type { Experiment } from '../experiment/experiment.ts'
import { FORMAT, type Result } from '../experiment/result.ts'
import { Rows } from '../experiment/rows.ts'
import { experiments } from '../experiments.ts'
import { partOf } from './part.ts'

/** A result as it was saved. */
export interface SavedResult {
  /** Of the file. */
  readonly name: string
  readonly experiment: Experiment
  readonly result: Result
}

/** More than any of our files is, and less than what makes a page that no browser shows. */
const MAX_BYTES = 64 * 2 ** 20

/**
 * The results in a file, or in all JSON files of a folder, in the order of the experiments.
 *
 * @throws Problem when it cannot be read, or one of them is no result.
 */
export async function readResults(path: string): Promise<SavedResult[]> {
  const found = await stat(path).catch((error: Error) => {
    throw new Problem(`${path} cannot be read: ${error.message}.`)
  })
  if (!found.isDirectory()) return [await readResult(path)]
  const names = (await readdir(path)).filter((name) => name.endsWith('.json')).toSorted()
  if (names.length === 0) throw new Problem(`${path} has no JSON files.`)
  const results = await Promise.all(names.map((name) => readResult(join(path, name))))
  const place = ({ experiment }: SavedResult) => experiments.indexOf(experiment)
  // Of several with the same experiment, info.json comes before info-more.json.
  return results.toSorted((a, b) => place(a) - place(b) || a.name.length - b.name.length)
}

/** @throws Problem when there is no such file, or it is no result of an experiment of ours. */
export async function readResult(path: string): Promise<SavedResult> {
  const name = basename(path)
  const problem = (why: string) => new Problem(`${path} cannot be read: ${why}.`)
  let document: unknown
  try {
    const { size } = await stat(path)
    if (size > MAX_BYTES) throw new Error(`it has ${size} bytes, too many for a report`)
    document = JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    throw problem(messageOf(error).replaceAll(/\s+/g, ' '))
  }
  const { format, experiment: wanted } = (document ?? {}) as Partial<Result>
  if (format !== FORMAT)
    throw problem(`it is no result of npm run load ("format" is not ${FORMAT})`)
  const experiment = experiments.find((one) => one.name === wanted)
  if (!experiment) throw problem(`there is no experiment ${JSON.stringify(wanted)}`)
  const result = document as Result
  try {
    requireShape(experiment, result)
  } catch (error) {
    throw problem(`it is ${FORMAT}, but ${messageOf(error)}`)
  }
  return { name, experiment, result }
}

/** Finds out now what would fail in the middle of a report. */
function requireShape(experiment: Experiment, result: Result): void {
  if (!Array.isArray(result.samples) || result.samples.length === 0) {
    throw new Error('it has no samples')
  }
  const _rows = Rows.of(experiment, result.samples)
  for (const { case: one, round, values } of result.samples) {
    const missing = Object.keys(one).find(
      (name) => !experiment.factors.some((f) => f.name === name),
    )
    if (missing !== undefined) throw new Error(`${experiment.name} has no factor ${missing}`)
    if (!Number.isInteger(round)) throw new Error('a sample has no round')
    const wrong = Object.values(values).find((value) => value !== null && typeof value !== 'number')
    if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong)} is no figure`)
  }
  partOf(experiment, result)
}
