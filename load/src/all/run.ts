import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { styleText } from 'node:util'
import { places } from '@onetrip/stack/places.ts'
import { describeError, messageOf, Problem } from '@onetrip/stack/problem.ts'
import { print, printError } from '@onetrip/stack/terminal.ts'
import { type Outputs, prepareOutputs, type ResultDocument } from '../report/outputs.ts'
import type { AllResult } from '../report/read.ts'
import { counted } from '../table.ts'
import { type AllOptions, presetOf } from './command.ts'
import { type AllPart, allParts, type Preset } from './parts.ts'

/**
 * The whole of `npm run load -- all`: runs one part after the other, and writes one file and one report
 * with what they gave; the file after each part, so that a crash costs no more than the part it is in.
 * A part that fails does not keep the others from running; an interrupt does.
 *
 * @param commandLine for the record.
 * @param parts what there is to run; default: all.
 * @throws Problem when a part failed, after all was written; the reason of `interrupt` when nothing was
 *   complete.
 */
export async function runAll(
  options: AllOptions,
  commandLine: string,
  interrupt: AbortSignal,
  parts: readonly AllPart[] = allParts,
): Promise<void> {
  const preset = presetOf(options)
  const chosen = parts.filter(({ name, seconds }) =>
    options.parts ? options.parts.includes(name) : seconds[preset] !== null,
  )
  const outputs = await prepareOutputs({ ...(await jsonBesideReport(options)), ...options })
  const date = new Date().toISOString()
  const results: ResultDocument[] = []
  const failures: AllResult['failures'] = []
  const whole = (interrupted: boolean): AllResult => ({
    format: 'onetrip-load-all/1',
    ...{ date, command: commandLine, interrupted, failures, parts: results },
  })
  for (const [index, part] of chosen.entries()) {
    if (interrupt.aborted) break
    print(`${index === 0 ? '' : '\n\n'}${heading(chosen, index, preset)}\n`)
    const before = results.length
    const collect = (result: ResultDocument) => void results.push(result)
    try {
      await part.run({ preset, outputs: { collect, report: false }, commandLine, interrupt })
    } catch (error) {
      if (interrupt.aborted) break
      printError(describeError(error))
      const kept = results.length > before
      failures.push({ part: part.name, message: messageOf(error), ...(kept && { kept }) })
    }
    // Until the last part is done, the file is one of a run that was ended early.
    if (results.length > before) await keep(outputs, whole(true), index + 1, chosen.length)
  }
  if (results.length === 0) {
    interrupt.throwIfAborted()
    throw new Problem(`Nothing was measured: ${failureText(failures)}`)
  }
  print()
  await outputs.save(whole(interrupt.aborted))
  if (failures.length > 0) throw new Problem(`Not measured to the end: ${failureText(failures)}`)
}

/** Where results are kept when no file was asked for; nowhere if there is to be no report either. */
async function jsonBesideReport({ json, report }: AllOptions): Promise<{ json?: string }> {
  if (json !== undefined || report !== true || process.env.ONETRIP_REPORT === 'off') return {}
  const folder = dirname(places().report)
  try {
    await mkdir(folder, { recursive: true })
  } catch {
    return {} // that the report cannot be written there is said elsewhere
  }
  return { json: join(folder, 'all.json') }
}

/** Saves the parts that are complete; a full disk ends nothing before the end. */
async function keep(outputs: Outputs, result: AllResult, done: number, all: number) {
  try {
    const path = await outputs.keep(result)
    if (path !== null) print(`\nSaved: ${counted(done, 'part')} of ${all}, in ${path}`)
  } catch (error) {
    printError(describeError(error))
  }
}

/** `[2/5] latency: about 2 minutes; 6 minutes to the end`. */
function heading(parts: readonly AllPart[], index: number, preset: Preset): string {
  const secondsOf = ({ seconds }: AllPart) => seconds[preset] ?? seconds.full ?? 0
  const left = parts.slice(index).map(secondsOf)
  const all = left.reduce((sum, seconds) => sum + seconds, 0)
  const [own = 0] = left
  const name = styleText('bold', parts[index]?.name ?? '')
  return `[${index + 1}/${parts.length}] ${name}: about ${inWords(own)}; ${inWords(all)} to the end`
}

function inWords(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds / 5) * 5} s`
  return `${Math.round(seconds / 60)} minutes`
}

const failureText = (failures: AllResult['failures']) =>
  failures.map(({ part, message }) => `${part} (${message.split('\n', 1)[0]})`).join(', ')
