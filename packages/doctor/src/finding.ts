import type { ClientGroup } from './census.ts'
import type { Costs, Figures } from './figures.ts'
import type { SlowCommand } from './replies.ts'
import { figure } from './text.ts'

export const severities = ['high', 'medium', 'low'] as const
export type Severity = (typeof severities)[number]

export interface Finding {
  /** Stable between versions: `connection-churn`. */
  id: string
  severity: Severity
  title: string
  /** Share of the main thread's work that the remedy would save, 0 to 1; null if it saves something else. */
  saving: number | null
  /** The effect of the remedy, in words. */
  saves: string
  evidence: string[]
  /** What the articles say, and our figures where they differ. Null if the articles say nothing. */
  articles: string | null
  remedy: string
}

/** The data of a watch. */
export interface Observation {
  figures: Figures
  costs: Costs
  /** INFO at the end. */
  info: ReadonlyMap<string, string>
  /** Null without the reply to CLIENT LIST. */
  clients: readonly ClientGroup[] | null
  /** Of the last hour. Null without the reply to SLOWLOG GET. */
  slowLog: readonly SlowCommand[] | null
  /** Commands that take less are ignored, in milliseconds. */
  stallMs: number
}

export type Check = (seen: Observation) => Finding | null

/** The severity for a share of the main thread's work. It is low if the share is below 0.5 % of a core. */
export function severityOf(share: number, { busy }: Costs): Severity {
  const isIdle = share * busy < 0.005
  if (isIdle || share < 0.05) return 'low'
  return share >= 0.2 ? 'high' : 'medium'
}

/** Sorts by severity, then by saving. @param cause precedes all others of its severity. */
export function ranked(findings: readonly Finding[], cause?: Finding): Finding[] {
  const place = ({ severity }: Finding) => severities.indexOf(severity)
  const saving = (one: Finding) => (one === cause ? 1 : (one.saving ?? 0))
  return findings.toSorted((a, b) => place(a) - place(b) || saving(b) - saving(a))
}

// Formatters for evidence.

export const perSecond = (count: number, { seconds }: Figures): string =>
  `${figure(count / seconds)}/s`

export const megabytes = (bytes: number): string => `${figure(bytes / 1e6)} MB`

/** `web (ioredis 6.0.0) at 10.0.0.7, user app: …`, for the three clients with the largest values above 0. */
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
