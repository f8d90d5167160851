#!/usr/bin/env node
import { writeFile } from 'node:fs/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { addressOf, hideCredentials } from './address.ts'
import { findingsOf } from './checks.ts'
import { type Finding, severities } from './finding.ts'
import { Probe } from './probe.ts'
import { messageOf, Problem } from './problem.ts'
import { reportOf, terminalReport } from './report.ts'
import { watch } from './watch.ts'

/** Exit code when there is a finding of the severity `--fail-on` or above. */
const FOUND = 4

interface Flags {
  url?: string
  watch: number
  stall: number
  maxClients: number
  failOn: (typeof severities)[number] | 'none'
  json?: string
}

const INTERRUPTED = 130

/** Without a terminal, the watch prints a line if it takes longer than this. */
const SLOW_MS = 2_000

/** Returns a parser of commander for numbers in a range. */
const number = (pattern: RegExp, what: string, min: number, max: number) => (text: string) => {
  const value = pattern.test(text.trim()) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new InvalidArgumentError(`It must be ${what} from ${min} to ${max}.`)
}
const wholeNumber = (min: number, max: number) => number(/^\d{1,15}$/, 'a whole number', min, max)
const seconds = (min: number, max: number) =>
  number(/^\d{1,9}(\.\d{1,6})?$/, 'a number of seconds', min, max)

function doctorCommand(interrupt: AbortSignal): Command {
  const command = new Command('onetrip-doctor')
    .description('watch any Redis or Valkey and report inefficient clients')
    .option('--url <url>', 'the server (default: the environment variable REDIS_URL)')
    .option('--watch <seconds>', 'how long to watch', seconds(1, 3_600), 10)
    .option(
      '--stall <ms>',
      'report commands that take this long or longer',
      wholeNumber(0, 60_000),
      10,
    )
    .option(
      '--max-clients <n>',
      'do not send CLIENT LIST if there are more connections',
      wholeNumber(0, 1_000_000),
      10_000,
    )
    .addOption(
      new Option(
        '--fail-on <severity>',
        `exit with ${FOUND} for findings of this severity or above`,
      )
        .choices([...severities, 'none'])
        .default('high'),
    )
    .option('--json <file>', 'write figures, findings and clients to this file')
  return command
    .addHelpText(
      'after',
      `
The doctor is read-only. It sends INFO, CLIENT LIST and SLOWLOG GET.
CLIENT LIST takes at most 1 % of the server's time. If the user lacks a permission, the report omits that data
and lists the command. These permissions are enough:
  ACL SETUSER doctor on >PASSWORD -@all +auth +client|setname +info +client|list +slowlog|get

Environment:
  REDIS_URL   the server, if --url is not given; may contain a password

Exit codes: 0 no finding of the severity --fail-on or above; ${FOUND} at least one; 1 the server cannot be watched.

Examples:
  onetrip-doctor --url redis://127.0.0.1:6379
  REDIS_URL=rediss://doctor:secret@cache.example:6380 onetrip-doctor --watch 60 --json report.json
  onetrip-doctor --url redis://127.0.0.1 --fail-on medium`,
    )
    .action(async () => {
      const { failOn, ...flags } = command.opts<Flags>()
      const findings = await examine(flags, interrupt)
      const bad = failOn === 'none' ? [] : severities.slice(0, severities.indexOf(failOn) + 1)
      if (findings.some(({ severity }) => bad.includes(severity))) process.exitCode = FOUND
    })
}

async function examine(flags: Omit<Flags, 'failOn'>, signal: AbortSignal): Promise<Finding[]> {
  const url = addressOf(flags.url)
  if (flags.json !== undefined) await writeJson(flags.json, '') // fails before the watch
  const { stall: stallMs, maxClients: maxListed } = flags
  const server = hideCredentials(url)
  const probe = await Probe.connect(url)
  try {
    const options = { seconds: flags.watch, maxListed, stallMs, signal }
    const seen = await watching(`Watching ${server} for ${flags.watch} s`, watch(probe, options))
    const findings = findingsOf(seen)
    const { unseen } = probe
    const report = reportOf(seen, findings, { server, unseen })
    console.log(`${report.version} at ${server}\n\n${terminalReport(seen, report)}`)
    if (flags.json !== undefined) {
      await writeJson(flags.json, `${JSON.stringify(report, null, 2)}\n`)
    }
    return findings
  } catch (error) {
    signal.throwIfAborted() // prefer the reason of the abort to the error that it caused
    throw error
  } finally {
    probe.close()
  }
}

/** Says what takes so long, on standard error: at once in a terminal. */
async function watching<T>(text: string, work: Promise<T>): Promise<T> {
  const wait = process.stderr.isTTY ? 0 : SLOW_MS
  const timer = setTimeout(() => console.error(`${text} …`), wait)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

/** @throws Problem */
async function writeJson(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: text === '' ? 'a' : 'w' }).catch((error: unknown) => {
    throw new Problem(`--json ${path} cannot be written: ${messageOf(error)}.`)
  })
}

const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => interrupt.abort(new Error(`interrupted by ${signal}`)))
}
try {
  await doctorCommand(interrupt.signal).parseAsync()
} catch (error) {
  const isKnown = error instanceof Problem || !(error instanceof Error)
  if (interrupt.signal.aborted) console.error('Interrupted.')
  else console.error(isKnown ? messageOf(error) : error.stack)
  process.exitCode = interrupt.signal.aborted ? INTERRUPTED : 1
}
