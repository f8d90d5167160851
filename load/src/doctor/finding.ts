import { figure } from '../experiment/figures.ts'
import type { ClientGroup } from './census.ts'
import type { Costs, Figures } from './figures.ts'
import type { SlowCommand, Stall } from './replies.ts'

export const severities = ['high', 'medium', 'low'] as const
export type Severity = (typeof severities)[number]

/** What is wrong, and what putting it right would save. */
export interface Finding {
  /** Stays the same between versions: `connection-churn`. */
  id: string
  severity: Severity
  title: string
  /** Share of the main thread's work that a remedy would save, 0 to 1; null where it saves something else. */
  saving: number | null
  /** What a remedy would save, in words. */
  saves: string
  evidence: string[]
  /** What the source articles say of it, with their figures; null where they do not. */
  documents: string | null
  remedy: string
}

/** All that was seen. */
export interface Observation {
  figures: Figures
  costs: Costs
  /** INFO at the end. */
  info: ReadonlyMap<string, string>
  /** Null where CLIENT LIST was not answered. */
  clients: readonly ClientGroup[] | null
  /** Of the last hour. Null where SLOWLOG was not answered; likewise the others. */
  slowLog: readonly SlowCommand[] | null
  stalls: readonly Stall[] | null
  settings: ReadonlyMap<string, string> | null
  /** Cores of the server's machine; null where they are not known. */
  cores: number | null
  /** A stall that is shorter does not count, in milliseconds. */
  stallMs: number
  /** How a key is shown, and its size in bytes where it is known. */
  keys: ReadonlyMap<string, KeyFacts>
}

export interface KeyFacts {
  shown: string
  bytes: number | null
}

export type Check = (seen: Observation) => Finding | null

/** By the share of the main thread's work, unless that is next to nothing. */
export function severityOf(share: number, { busy }: Costs): Severity {
  const isIdle = share * busy < 0.005
  if (isIdle || share < 0.05) return 'low'
  return share >= 0.2 ? 'high' : 'medium'
}

/** By how long all clients wait. */
export function severityOfStall(longestMs: number): Severity {
  if (longestMs >= 1_000) return 'high'
  return longestMs >= 100 ? 'medium' : 'low'
}

/** The severest first; of the same severity, what saves most. */
export function ranked(findings: readonly Finding[]): Finding[] {
  const place = ({ severity }: Finding) => severities.indexOf(severity)
  return findings.toSorted((a, b) => place(a) - place(b) || (b.saving ?? 0) - (a.saving ?? 0))
}

// What evidence is made of.

export const perSecond = (count: number, { seconds }: Figures): string =>
  `${figure(count / seconds)}/s`

export const megabytes = (bytes: number): string => `${figure(bytes / 1e6)} MB`

/** `web (ioredis 6.0.0) at 10.0.0.7, user app: …`, for the three clients with the most, above 0. */
export function names(
  clients: Observation['clients'],
  of: (group: ClientGroup) => [most: number, text: string],
): string[] {
  return (clients ?? [])
    .map((group) => ({ label: group.label, of: of(group) }))
    .filter(({ of: [most] }) => most > 0)
    .toSorted((a, b) => b.of[0] - a.of[0])
    .slice(0, 3)
    .map(({ label, of: [, text] }) => `${label}: ${text}`)
}
