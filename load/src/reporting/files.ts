import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import type { Experiment } from '../experiments/experiment.ts'
import { experimentOf, experiments } from '../experiments/index.ts'
import { FORMAT, type Result } from '../rounds/result.ts'
import { partOf } from './part.ts'

export interface SavedResult {
  /** The name of its file. */
  readonly name: string
  readonly experiment: Experiment
  readonly result: Result
}

/** Reads the results in all JSON files of a folder, in the order of the experiments. */
export async function readResults(folder: string): Promise<SavedResult[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).toSorted()
  const results = await Promise.all(names.map((name) => readResult(join(folder, name))))
  const place = ({ experiment }: SavedResult) => experiments.indexOf(experiment)
  // Results of the same experiment: info.json comes before info-more.json.
  return results.toSorted((a, b) => place(a) - place(b) || a.name.length - b.name.length)
}

/** @throws Problem when the file cannot be read or is not a result of a known experiment. */
export async function readResult(path: string): Promise<SavedResult> {
  try {
    const read: Result | null = JSON.parse(await readFile(path, 'utf8'))
    if (read?.format !== FORMAT) throw new Error(`not a result of npm run load (${FORMAT})`)
    const experiment = experimentOf(read.experiment)
    if (!experiment) throw new Error(`unknown experiment ${JSON.stringify(read.experiment)}`)
    if (!read.samples?.length) throw new Error('the result has no samples')
    const saved = { name: basename(path), experiment, result: read }
    partOf(saved) // fail here rather than in the middle of a report
    return saved
  } catch (error) {
    throw new Problem(`${path} cannot be read: ${messageOf(error).replaceAll(/\s+/g, ' ')}.`)
  }
}
