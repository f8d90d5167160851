import { availableParallelism } from 'node:os'
import {
  hideCredentials,
  isLocal,
  redisAddress,
  redisOfEnvironment,
} from '@onetrip/stack/address.ts'
import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import type { Invocation } from '../command.ts'
import { outputFile } from '../reporting/outputs.ts'
import { clientChecks } from './client-findings.ts'
import { type Finding, type Observation, ranked, severities } from './finding.ts'
import { Probe } from './probe.ts'
import { reportOf, terminalReport } from './report.ts'
import { serverChecks } from './server-findings.ts'
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

/** `npm run load -- doctor` */
export function doctorCommand({ interrupt }: Invocation): Command {
  const command = new Command('doctor')
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
  npm run load -- doctor --url redis://127.0.0.1:6379
  REDIS_URL=rediss://doctor:secret@cache.example:6380 npm run load -- doctor --watch 60 --json report.json
  npm run load -- doctor --url redis://127.0.0.1 --fail-on medium`,
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
  const json = flags.json === undefined ? null : await outputFile('--json', flags.json)
  const cores = flags.cores ?? (isLocal(url) ? availableParallelism() : null)
  const { stall: stallMs, maxClients: maxListed } = flags
  const server = hideCredentials(url)
  const probe = await Probe.connect(url)
  try {
    const options = { seconds: flags.watch, maxListed, cores, stallMs, signal }
    const seen = await step(`Watching ${server} for ${flags.watch} s`, () => watch(probe, options))
    const findings = findingsOf(seen)
    const { unseen } = probe
    const report = reportOf(seen, findings, { server, unseen })
    print(`${report.version} at ${server}\n\n${terminalReport(seen, report)}`)
    await json?.save(`${JSON.stringify(report, null, 2)}\n`)
    return findings
  } catch (error) {
    signal.throwIfAborted() // prefer the reason of the abort to the error that it caused
    throw error
  } finally {
    probe.close()
  }
}

/** The findings of all checks, ranked. */
export const findingsOf = (seen: Observation): Finding[] =>
  ranked([...clientChecks, ...serverChecks].flatMap((check) => check(seen) ?? []))

/** @throws Problem when there is no address, or when `given` has a password, which other users could see. */
async function addressOf(given: string | undefined): Promise<string> {
  if (given !== undefined && redisAddress(given).options.password) {
    throw new Problem(
      'A password on the command line is visible to all users of this machine. Set REDIS_URL in the environment instead, or put the password into a file (REDIS_PASSWORD_FILE).',
    )
  }
  const url = await redisOfEnvironment({ ...process.env, ...(given && { REDIS_URL: given }) })
  if (url !== undefined) return url
  throw new Problem('Give the address of a server: --url redis://127.0.0.1:6379.')
}
