import { styleText } from 'node:util'
import { type Figures, hasScripts } from './figures.ts'
import type { Finding, Observation } from './finding.ts'
import type { Unseen } from './probe.ts'
import {
  columns,
  commandName,
  counted,
  figure,
  percent,
  type TextTable,
  tableText,
  wrapped,
} from './text.ts'

/** The file that `--json` writes. */
export interface DoctorReport {
  format: 'onetrip-doctor/1'
  /** The end of the watch, in ISO 8601. */
  date: string
  /** Without user and password. */
  server: string
  version: string
  findings: Finding[]
  /** Without the doctor's own commands. */
  figures: Record<string, unknown>
  commands: Record<string, { calls: number; micros: number }>
  clients: Observation['clients']
  unseen: readonly Unseen[]
}

interface About {
  server: string
  unseen: readonly Unseen[]
}

export function reportOf(
  { figures, clients, info, costs }: Observation,
  findings: Finding[],
  { server, unseen }: About,
): DoctorReport {
  const { commandStats, ...others } = figures
  const product = info.has('valkey_version') ? 'Valkey' : 'Redis'
  return {
    format: 'onetrip-doctor/1',
    date: new Date().toISOString(),
    server,
    version: `${product} ${info.get('valkey_version') ?? info.get('redis_version') ?? 'unknown'}`,
    findings,
    figures: { ...others, mainThreadBusy: costs.busy },
    commands: Object.fromEntries(commandStats),
    clients,
    unseen,
  }
}

const whole = (count: number) => count.toLocaleString('en-US')
const kilobytes = (bytes: number) => `${whole(Math.ceil(bytes / 1e3))} kB`

function tripsText({ commandsPerTrip, commandStats }: Figures): string {
  if (commandsPerTrip === null) {
    return 'unknown per round trip: Redis reads large requests in several parts'
  }
  const bound = hasScripts(commandStats)
    ? ' at most: commands that scripts ran are counted, too'
    : ''
  return `${figure(commandsPerTrip)} per round trip${bound}`
}

function tablesOf({ figures, clients }: Observation): TextTable[] {
  const { mainThread, lifetimeSeconds, seconds } = figures
  const lifetime =
    lifetimeSeconds === null
      ? ''
      : `; short connections stay open for ${figure(lifetimeSeconds * 1_000)} ms on average`
  const facts = [
    ['commands', `${figure(figures.commandsPerSecond)}/s, ${tripsText(figures)}`],
    ['new connections', `${figure(figures.connectionsOpened / seconds)}/s${lifetime}`],
    [
      'main thread CPU, of a core',
      `${percent(mainThread.user)} user, ${percent(mainThread.kernel)} kernel`,
    ],
  ]
  const commands = [...figures.commandStats].toSorted(([, a], [, b]) => b.micros - a.micros)
  return [
    { caption: 'Overview', head: ['figure', 'value'], rows: facts },
    {
      caption: 'Commands by execution time',
      head: ['calls/s', 'µs each', 'of a core', 'command'],
      rows: commands
        .slice(0, 10)
        .map(([name, { calls, micros }]) => [
          figure(calls / seconds),
          figure(micros / calls),
          percent(micros / 1e6 / seconds),
          commandName(name),
        ]),
    },
    {
      caption: 'Clients',
      head: ['connections', 'short', 'active', 'longest output', 'client', 'last commands'],
      rows: (clients ?? [])
        .slice(0, 10)
        .map((group) => [
          whole(group.connections),
          whole(group.short),
          percent(group.active),
          kilobytes(group.outputBytes),
          group.label,
          group.lastCommands.join(', '),
        ]),
    },
  ].filter(({ rows }) => rows.length > 0)
}

/** Of the details of a finding. */
const INDENT = 11

/** The details of a finding. */
const linesOf = (finding: Finding): [label: string, text: string][] => [
  ['Saves', finding.saves],
  ...finding.evidence.map((text): [string, string] => ['Seen', text]),
  ...(finding.articles === null ? [] : [['Source', finding.articles] as [string, string]]),
  ['Remedy', finding.remedy],
]

function summary(seen: Observation, { findings: { length } }: DoctorReport): string {
  if (length === 0)
    return seen.figures.commands === 0
      ? 'No commands came: watch while clients work.'
      : 'Nothing found.'
  return `${counted(length, 'finding')}${length > 1 ? ', the most severe first' : ''}.`
}

const missing = ({ unseen }: DoctorReport) =>
  unseen.map(({ command, reason }) => `${command}: ${reason}`)

export function terminalReport(seen: Observation, report: DoctorReport): string {
  const found = report.findings.map((finding, index) =>
    [
      ...wrapped(`[${finding.severity}] ${finding.title} (${finding.id})`, columns() - 3).map(
        (line, number) => styleText('bold', `${number === 0 ? `${index + 1}.` : '  '} ${line}`),
      ),
      ...linesOf(finding).flatMap(([label, text]) =>
        wrapped(text, columns() - INDENT).map(
          (line, number) => `   ${(number === 0 ? `${label}:` : '').padEnd(INDENT - 3)}${line}`,
        ),
      ),
    ].join('\n'),
  )
  return [
    ...tablesOf(seen).map(tableText),
    summary(seen, report),
    ...found,
    ...(report.unseen.length > 0 ? [['Missing data:', ...missing(report)].join('\n  ')] : []),
  ].join('\n\n')
}
