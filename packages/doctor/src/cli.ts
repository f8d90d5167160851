#!/usr/bin/env node
import { rename, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { Command, InvalidArgumentError, Option } from 'commander'
import { addressOf, hideCredentials, isLocal } from './address.ts'
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
  cores?: number
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
      '--cores <n>',
      "cores of the server's machine (default: the cores of this machine, if the server runs here)",
      wholeNumber(1, 4_096),
    )
    .option('--stall <ms>', 'report stalls of this length or more', wholeNumber(0, 60_000), 10)
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
The doctor is read-only. It sends INFO, CLIENT LIST, SLOWLOG GET, LATENCY LATEST, and CONFIG GET io-threads.
CLIENT LIST takes at most 1 % of the server's time. If the user lacks a permission, the report omits that data
and lists the command. These permissions are enough:
  ACL SETUSER doctor on >PASSWORD -@all +auth +client|setname +info +client|list +slowlog|get
    +latency|latest +config|get

Environment:
  REDIS_URL             the server, if --url is not given; may contain a password
  REDIS_PASSWORD_FILE   a file with the password, for a URL without one

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
  const url = await addressOf(flags.url)
  const json = flags.json === undefined ? null : await outputFile(flags.json)
  const cores = flags.cores ?? (isLocal(url) ? availableParallelism() : null)
  const { stall: stallMs, maxClients: maxListed } = flags
  const server = hideCredentials(url)
  const probe = await Probe.connect(url)
  try {
    const options = { seconds: flags.watch, maxListed, cores, stallMs, signal }
    const seen = await watching(`Watching ${server} for ${flags.watch} s`, watch(probe, options))
    const findings = findingsOf(seen)
    const { unseen } = probe
    const report = reportOf(seen, findings, { server, unseen })
    console.log(`${report.version} at ${server}\n\n${terminalReport(seen, report)}`)
    await json?.(`${JSON.stringify(report, null, 2)}\n`)
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

/** Checks that the file can be written. Returns the function that writes it. @throws Problem */
async function outputFile(path: string): Promise<(text: string) => Promise<void>> {
  const draft = `${path}.${process.pid}.tmp`
  const write = async (text: string, finish: () => Promise<void>) => {
    try {
      await writeFile(draft, text)
      await finish()
    } catch (error) {
      await rm(draft, { force: true })
      throw new Problem(`--json ${path} cannot be written: ${messageOf(error)}.`)
    }
  }
  await write('', () => rm(draft))
  return async (text) => await write(text, () => rename(draft, path))
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
